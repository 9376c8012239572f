"""The names, dates and numbers that a question asks for, and those that the text of a memory has."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from workspaces.index.question_gist import MONTH, MONTHS, gist_of, is_name, names_in, words_in

_MONTH_WORD = "|".join(sorted(MONTH, key=len, reverse=True))
_SELF = frozenset({"i", "my", "me", "mine", "myself"}) | frozenset(
    f"i{apostrophe}{end}" for apostrophe in ("'", "\u2019") for end in ("m", "ve", "d", "ll")
)
_ASKS_WHEN = re.compile(
    r"\s*(?:when|since when|until when|how long|(?:on |in )?(?:what|which) (?:date|day|month|year|time))\b",
    re.I,
)
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|morning|evening|night|recently|soon|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    + "|".join(month for month in MONTHS if month not in {"march", "may"})
    + r"|(?-i:March|May)|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}[:.]\d\d|"
    r"\d{4}-\d\d-\d\d)\b",
    re.I,
)
# "may" and "march" are verbs too, so a month counts only beside a number, a year or a word that introduces a date.
_DATED = re.compile(
    rf"(?:(?P<day>\b[0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH_WORD})\b"
    rf"|\b(?P<m2>{_MONTH_WORD})\.?\s+(?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\d)"
    rf"|\b(?:in|of|last|this(?!\s+(?-i:may)\b)|next|by|since|until|during|before|after|early|late|mid)"
    rf"[\s-]+(?P<m3>{_MONTH_WORD})\b"
    rf"|\b(?P<m4>{_MONTH_WORD})(?=,?\s+(?:19|20)\d\d))",
    re.I,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_TODAY = re.compile(r"\b(?:today|this morning|this afternoon|this evening|tonight)\b")
_AGO = re.compile(r"\b(\d{1,3}|a|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.I)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|long|old|far)\b", re.I)
_NUMBERS = re.compile(
    r"(?:\b\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice|couple|several|few|both|many)\b)",
    re.I,
)
_COUNT = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
TOLD_OF = 7  # days after an event in which people usually mention it
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True)
class Dates:
    """The days that a question refers to: a range, or any of month, day and year."""

    first: date | None = None
    last: date | None = None
    month: int | None = None
    day: int | None = None
    year: int | None = None

    def nearness(self, moment: datetime) -> float:
        """Return 1 for a moment on these days, 0.5 in the week after a date such as "3 May", and else 0."""
        on = moment.astimezone(UTC).date()
        if self._include(on):
            return 1.0
        if self.day is None or self.month is None:
            return 0.0
        return 0.5 if any(self._include(on - timedelta(days=ago)) for ago in range(1, TOLD_OF + 1)) else 0.0

    def is_past(self, today: date) -> bool:
        """Return whether these days are certainly in the past."""
        if self.last is None and self.year is None:
            return False
        last = self.last or date(self.year or 1, self.month or 12, 1) + timedelta(days=31)
        return last < today

    def _include(self, on: date) -> bool:
        if self.first and self.last:
            return self.first <= on <= self.last
        return (
            (self.month is None or on.month == self.month)
            and (self.day is None or on.day == self.day)
            and (self.year is None or on.year == self.year)
        )


@dataclass(frozen=True)
class Question:
    """A question with what it asks for."""

    text: str
    names: frozenset[str]
    dates: Dates | None
    asks_when: bool
    asks_number: bool
    about_self: bool  # "my", "I": about the person who asks
    gist: str  # the question without names and question words


def read_question(text: str, now: datetime) -> Question:
    names, gist, words = names_in(text), gist_of(text), words_in(text)
    return Question(
        text=text,
        names=names,
        dates=_dates(text, now.astimezone(UTC).date()),
        asks_when=bool(_ASKS_WHEN.match(text)),
        asks_number=bool(_ASKS_NUMBER.search(text)),
        about_self=any(word.lower() in _SELF for word in words),
        gist=gist,
    )


def subject(content: str, author: str) -> str:
    """Return the person a memory is about, in lower case: the name at its beginning, its author for "I", or else ""."""
    words = words_in(content[:200])[:2]
    if not words:
        return ""
    # Extraction calls the author "User", as in "User is vegetarian".
    if words[0].lower() in _SELF or words[0] == "User" or [word.lower() for word in words] == ["the", "user"]:
        return author.lower()
    return words[0].lower() if is_name(words[0]) else ""


def mentions_time(content: str) -> bool:
    return bool(_TIME_WORDS.search(content))


def mentions_number(content: str) -> bool:
    return bool(_NUMBERS.search(content))


def asks(content: str) -> bool:
    """Return whether a text ends with a question mark. Such a memory rarely answers a question."""
    return content.endswith("?")


def _dates(text: str, today: date) -> Dates | None:
    if iso := _ISO.search(text):
        year, month, day = map(int, iso.groups())
        return Dates(year=year, month=month, day=day)
    lower = text.lower()
    if "yesterday" in lower:
        return _range(today, 1, 1)
    if _TODAY.search(lower):
        return _range(today, 0, 0)
    if "this week" in lower:
        return _range(today, 6, 0)
    if "last week" in lower:
        return _range(today, 13, 1)
    if "last month" in lower:
        return _range(today, 61, 1)
    if "last year" in lower:
        return Dates(year=today.year - 1)
    if ago := _AGO.search(lower):
        count, unit = ago.groups()
        days = (_COUNT.get(count) or int(count)) * _DAYS[unit]
        return _range(today, days + _DAYS[unit] // 2, max(0, days - _DAYS[unit] // 2))
    match = _DATED.search(text)
    year_found = _YEAR.search(text)
    if match is None and year_found is None:
        return None
    parts = match.groupdict() if match else {}
    name = next((parts[key] for key in ("m1", "m2", "m3", "m4") if parts.get(key)), None)
    day_text = parts.get("day") or parts.get("day2")
    return Dates(
        month=MONTH[name.lower()] if name else None,
        day=int(day_text) if day_text else None,
        year=int(year_found.group(1)) if year_found else None,
    )


def _range(today: date, earliest: int, latest: int) -> Dates:
    """Return the days from ``earliest`` to ``latest`` days ago."""
    return Dates(first=today - timedelta(days=earliest), last=today - timedelta(days=latest))
