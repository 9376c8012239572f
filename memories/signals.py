"""What a question says besides its meaning: whom it names, which time it means. Pure; ``now`` is passed in.

What each signal is worth is measured in docs/recall.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

MONTHS = tuple(date(2000, number, 1).strftime("%B").lower() for number in range(1, 13))
_SHORT = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
_MONTH = {name: number for number, name in enumerate(MONTHS, 1)} | _SHORT
_MONTH_WORD = "|".join(sorted(_MONTH, key=len, reverse=True))
_ASKING = frozenset(
    {
        "what",
        "when",
        "where",
        "who",
        "whom",
        "whose",
        "which",
        "why",
        "how",
        "did",
        "does",
        "do",
    }
)
QUESTION_WORDS = frozenset(
    {
        "what",
        "when",
        "where",
        "who",
        "whom",
        "whose",
        "which",
        "why",
        "how",
        "did",
        "does",
        "do",
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "should",
        "may",
        "might",
        "shall",
        "am",
        "the",
        "a",
        "an",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "with",
        "and",
        "or",
        "but",
        "be",
        "been",
        "being",
        "if",
        "i",
        "my",
        "me",
        "we",
        "our",
        "you",
        "your",
        "tell",
        "give",
        "show",
        "list",
        "name",
        "please",
        "remind",
    }
)
_TOKEN = re.compile(r"[^\W_][\w'\u2019-]*")
_POSSESSIVE = re.compile(r"['\u2019]s$|['\u2019]$")
_ASKS_WHEN = re.compile(
    r"\s*(?:when|since when|until when|how long|(?:on |in )?(?:what|which) (?:date|day|month|year|time))\b",
    re.I,
)
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|morning|evening|night|recently|soon|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    + "|".join(MONTHS)
    + r"|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}[:.]\d\d|"
    r"\d{4}-\d\d-\d\d)\b",
    re.I,
)
# "may" and "march" are verbs too: a month counts beside a number, a year or a word that leads to a date.
_DATED = re.compile(
    rf"(?:(?P<day>\b[0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH_WORD})\b"
    rf"|\b(?P<m2>{_MONTH_WORD})\.?\s+(?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\d)"
    rf"|\b(?:in|of|last|this|next|by|since|until|during|before|after|early|late|mid)[\s-]+(?P<m3>{_MONTH_WORD})\b"
    rf"|\b(?P<m4>{_MONTH_WORD})(?=,?\s+(?:19|20)\d\d))",
    re.I,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_AGO = re.compile(r"\b(\d{1,3}|a|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.I)
_COUNT = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True)
class Dates:
    """The days a question means: a range, or any of month, day and year."""

    first: date | None = None
    last: date | None = None
    month: int | None = None
    day: int | None = None
    year: int | None = None

    def match(self, moment: datetime) -> bool:
        on = moment.astimezone(UTC).date()
        if self.first and self.last:
            return self.first <= on <= self.last
        return (
            (self.month is None or on.month == self.month)
            and (self.day is None or on.day == self.day)
            and (self.year is None or on.year == self.year)
        )


@dataclass(frozen=True)
class Question:
    text: str
    names: frozenset[str]
    dates: Dates | None
    asks_when: bool
    about_self: bool  # "my", "I": about the person who asks
    gist: str  # without names and question words: what is asked, whoever it is about


def read_question(text: str, now: datetime) -> Question:
    words = [_POSSESSIVE.sub("", word) for word in _TOKEN.findall(text)]
    names = frozenset(word.lower() for word in words if _is_name(word))
    gist = " ".join(w for w in words if w.lower() not in names and w.lower() not in _ASKING)
    return Question(
        text=text,
        names=names,
        dates=_dates(text, now.astimezone(UTC).date()),
        asks_when=bool(_ASKS_WHEN.match(text)),
        about_self=any(
            word.lower() in {"i", "my", "me", "mine", "myself", "i'm", "i\u2019m"} for word in words
        ),
        gist=gist or text,
    )


def subject(content: str, author: str) -> str:
    """Whom a memory is about, lower-case: the name it begins with, its author where it speaks of "I", or ""."""
    first = _TOKEN.search(content[:200])
    if first is None:
        return ""
    word = _POSSESSIVE.sub("", first.group())
    if word.lower() in {
        "i",
        "my",
        "i'm",
        "i\u2019m",
        "i've",
        "i\u2019ve",
        "i'd",
        "i\u2019d",
        "i'll",
        "i\u2019ll",
    }:
        return author.lower()
    return word.lower() if _is_name(word) else ""


def mentions_time(content: str) -> bool:
    return bool(_TIME_WORDS.search(content))


def _is_name(word: str) -> bool:
    return (
        word[:1].isupper()
        and len(word) > 1
        and word.lower() not in QUESTION_WORDS
        and word.lower() not in _MONTH
    )


def _dates(text: str, today: date) -> Dates | None:
    if iso := _ISO.search(text):
        year, month, day = map(int, iso.groups())
        return Dates(year=year, month=month, day=day)
    lower = text.lower()
    if "yesterday" in lower:
        return _range(today, 1, 1)
    if "last week" in lower:
        return _range(today, 13, 1)
    if "last month" in lower:
        return _range(today, 61, 1)
    if ago := _AGO.search(lower):
        count, unit = ago.groups()
        days = (_COUNT.get(count) or int(count)) * _DAYS[unit]
        return _range(today, days + _DAYS[unit] // 2, max(0, days - _DAYS[unit] // 2))
    found = _DATED.search(text)
    year_found = _YEAR.search(text)
    if found is None and year_found is None:
        return None
    parts = found.groupdict() if found else {}
    name = next((parts[key] for key in ("m1", "m2", "m3", "m4") if parts.get(key)), None)
    day_text = parts.get("day") or parts.get("day2")
    return Dates(
        month=_MONTH[name.lower()] if name else None,
        day=int(day_text) if day_text else None,
        year=int(year_found.group(1)) if year_found else None,
    )


def _range(today: date, earliest: int, latest: int) -> Dates:
    """From ``earliest`` to ``latest`` days ago."""
    return Dates(first=today - timedelta(days=earliest), last=today - timedelta(days=latest))
