# ruff: noqa: RUF001  words of other scripts
"""Parsing of the period that a statement gives for itself: "since March 2024", "bis Mai", "从5月起".

A bound is a word such as "since", followed by a month or a year. "until noon", "from Monday to Friday" and "up to 2,000
euros" are no bounds. Neither is a range of months without a year, because it recurs every year. dateparser parses the
dates in the language of the word next to them. All times are in UTC. This module does not access the database.
"""

import re
from calendar import month_name
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from dateparser.date import DateDataParser
from dateparser.languages.loader import default_loader
from dateutil.relativedelta import relativedelta

# Words before a date, by language: a start in the past ("since"), any start ("from"), an end, and between both.
_WORDS = {
    "en": ("since", "from|as of|starting|starting in|effective", "until|till|through", "to"),
    "de": ("seit|seit dem", "ab|ab dem|von|vom", "bis|bis zum", "bis|bis zum"),
    "fr": ("depuis|depuis le", "à partir de|à partir du|à compter de|à compter du|dès|dès le|de|du",
           "jusqu'à|jusqu'en|jusqu'au", "à|au"),
    "es": ("desde|desde el", "a partir de|a partir del|de|del", "hasta|hasta el", "a|al"),
    "it": ("dal|da", "a partire da|a partire dal", "fino a|fino al", "a|al"),
    "pt": ("desde|desde o", "a partir de|a partir do|de", "até|até ao|até o", "a|ao"),
    "nl": ("sinds", "vanaf|van", "tot|tot en met|t/m", "tot|tot en met"),
    "pl": ("od", "począwszy od", "do", "do"),
    "cs": ("od", "počínaje", "do", "do"),
    "ru": ("с|со", "начиная с", "до|по", "до|по"),
    "uk": ("з|від", "починаючи з", "до|по", "до|по"),
    "sv": ("sedan", "från|från och med", "till|till och med|tills", "till"),
    "vi": ("từ", "bắt đầu từ", "đến|cho đến", "đến"),
    "ar": ("منذ", "من|ابتداء من", "حتى|إلى", "إلى|حتى"),
}  # fmt: skip
# Beginnings of a sentence about the past, but not "before that date" or "sooner or later".
_OVER = re.compile(
    r"(?:^|[.;:!?。；！？]\s*)(?:(?:the |we |user |wir |on |nous |se )?(?:"
    r"previously|formerly|originally|used to|until recently|(?:was|were) (?:debating|considering|undecided)|"
    r"(?:replaced|superseded) by|switched from [^.]+?,? (?:later|then)|"
    r"früher(?! oder)|zuvor|vormals|ehemals|ursprünglich|überlegten, ob|schwankten zwischen|(?:ersetzt|abgelöst) durch|"
    r"auparavant|autrefois|anciennement|initialement|à l'origine|hésitait entre|hésitions entre|remplacée?s? par|"
    r"antes(?! de| que| del)|anteriormente|antiguamente|originalmente|dudaba entre|(?:sustituid|reemplazad)[oa]s? por|"
    r"in precedenza|un tempo|sostituit[oaie] d[ao]|antigamente|substituíd[oa]s? p|voorheen|vroeger|oorspronkelijk|"
    r"vervangen door|wcześniej|dawniej|poprzednio|pierwotnie|dříve|původně|раньше|ранее|прежде|изначально|раніше|"
    r"tidigare|förut|ursprungligen|ersatt av|önceden|eskiden|trước đây|سابقا"
    r")(?!\w)|之前|以前|此前|原来|原先|起初|(?:在|还在)?犹豫|以前は|昔は|かつて|当初は|예전에는|이전에는|전에는|원래는)",
    re.I,
)
# Words of questions about the past, and past tenses by their endings.
_BEFORE = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|used to|old|last|ago|until|"
    r"then|was|were|did|had|früher\w*|vorher\w*|zuvor|davor|damals|ursprünglich\w*|anfangs|zuerst|ehemalig\w*|alte[nrs]?|"
    r"letzte[nrs]?|war(?:en)?|hatten?|wurden?|hieß(?:en)?|avant|auparavant|autrefois|anciens?|anciennes?|précédente?s?|"
    r"initiale?s?|départ|dernière?|\w+(?:ait|aient|ions)|antes|anterior(?:es)?|antigu[oa]s?|antig[oa]s?|original\w*|"
    r"principio|pasad[oa]|eran?|fue|foi|\w+(?:ábamos|ában|aba|aban|ía|íamos|ían|ávamos|ava|avam)|prima|precedent[ei]|"
    r"vecchi[oa]?|passat[oa]|erano|\w+(?:avamo|avano|eva|evamo)|vroeger|voorheen|eerdere?|vorige?|oorspronkelijk|waren|"
    r"gebruikten|wcześniej|dawniej|poprzedni\w*|kiedyś|przedtem|był\w*|\w+liśmy|dříve|původn\w*|раньше|ранее|прежн\w*|"
    r"стар\w+|был\w*|прошл\w*|раніше|колишн\w*|tidigare|förr\w*|förut|gamla|önce\w*|eski\w*|geçen|trước|cũ)\b|"
    r"之前|以前|原来|原先|过去|曾|当时|旧|去年|昔|かつて|当初|でした|だった|いた|전에|예전|원래|이전|كان|كنا|سابق|قبل",
    re.I,
)
# These often mean "of", so they are a bound only in a range.
_OFTEN_OTHER = frozenset({"von", "vom", "de", "du", "del", "van", "من"})
_UNIT = r"(?:\d{4}\s*[年년]\s*)?\d{1,2}\s*[月월](?:\s*\d{1,2}\s*[日号일])?|\d{4}\s*[年년]"
_EAST_FROM = re.compile(
    rf"(?:自|从|從)\s*(?P<a>{_UNIT})|(?P<b>{_UNIT})\s*(?:起|开始|開始|以来|以來|から|以降|부터|이후)"
)
_EAST_UNTIL = re.compile(
    rf"(?:直到|截至|截止|到|至|～)\s*(?P<a>{_UNIT})|(?P<b>{_UNIT})\s*(?:为止|為止|止|まで|까지)"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d(?!\d)")
_PARTS_OF = re.compile(
    r"^(?:(?:the|early|mid|late|end of|beginning of|anfang|mitte|ende|début|fin|mi|finales de|principios de|"
    r"mediados de|fine|inizio|dem|den|der|le|el|il|lo|den|de|in|on)[\s-]+)+",
    re.I,
)
_BREAK = re.compile(r"(?<!\d)[.;:!?](?=\s|$)|[()“”\"]")
_STEPS = {"day": relativedelta(days=1), "month": relativedelta(months=1), "year": relativedelta(years=1)}
_SETTINGS = {
    "PARSERS": ["absolute-time"],
    "PREFER_DAY_OF_MONTH": "first",
    "PREFER_MONTH_OF_YEAR": "first",
    "PREFER_DATES_FROM": "current_period",
}
MOST_WORDS = 5  # words per date, such as "3 de maio de 2024"


class _Words(NamedTuple):
    since: frozenset[str]
    begin: frozenset[str]
    until: frozenset[str]
    joining: re.Pattern[str]


class Validity(NamedTuple):
    """The period in which a statement is true. ``valid_to`` is the last moment of it."""

    valid_from: datetime | None = None
    valid_to: datetime | None = None


class _Date(NamedTuple):
    begins: datetime
    ends: datetime
    has_year: bool
    at: int  # where the date ends in the text


def read_validity(text: str, said_at: datetime) -> Validity:
    """Return the period that a statement gives for itself, by the first start and the first end in it.

    ``said_at``: the time of the statement, which decides the year of a month without one.
    """
    said_at, text = said_at.astimezone(UTC), text.replace("’", "'")
    begin, until = _east(_EAST_FROM, text, said_at, "from"), _east(_EAST_UNTIL, text, said_at, "until")
    for match in _triggers().finditer(text):
        for language, words in _words().items():
            own, last = _western(match, language, words, said_at)
            begin, until = begin or own, until or last
    if begin and until:
        if not begin.has_year and not until.has_year:
            return Validity()
        begin, until = _placed(begin, until.begins, "since"), _placed(until, begin.begins, "until")
        if begin.begins > until.ends:
            return Validity()
    return Validity(begin.begins if begin else None, until.ends if until else None)


def says_over(text: str) -> bool:
    """Return whether a sentence of the text begins with words such as "previously" or "replaced by"."""
    return _OVER.search(text.replace("’", "'")) is not None


def speaks_of_before(question: str) -> bool:
    """Return whether a question has a word about the past, such as "earlier" or "was", or a known past-tense ending.

    Knows only the words and endings in ``_BEFORE``, so not the regular past in "Who worked here?".
    """
    return _BEFORE.search(question) is not None


def _east(pattern: re.Pattern[str], text: str, said_at: datetime, side: str) -> _Date | None:
    match = pattern.search(text)
    if match is None:
        return None
    language = "ko" if re.search("[가-힣]", text) else "ja" if re.search("[ぁ-ん]", text) else "zh"
    read = _read(match["a"] or match["b"], language, match.end())
    return _placed(read, said_at, side) if read else None


def _western(
    match: re.Match[str], language: str, words: _Words, said_at: datetime
) -> tuple[_Date | None, _Date | None]:
    """Return the start and the end that a word such as "since" of this language and the dates after it give."""
    word, text = match[1].casefold(), match.string
    if word not in words.since | words.begin | words.until:
        return None, None
    read = _date_at(text, match.end(), language)
    if read is None:
        return None, None
    if word in words.until:
        return None, _placed(read, said_at, "until")
    joined = words.joining.match(text, read.at)
    last = _date_at(text, joined.end(), language) if joined else None
    if word in _OFTEN_OTHER and last is None:
        return None, None
    begin = _placed(read, said_at, "since" if word in words.since else "from")
    return begin, _placed(last, said_at, "until") if last else None


def _date_at(text: str, at: int, language: str) -> _Date | None:
    """Return the longest date that begins here. A number like a year followed by more words is an amount."""
    rest = text[at : at + 60]
    if broken := _BREAK.search(rest):
        rest = rest[: broken.start()]
    skipped = _PARTS_OF.match(rest)
    start = skipped.end() if skipped else 0
    words = list(re.finditer(r"\S+", rest[start:]))[:MOST_WORDS]
    for word in reversed(words):
        end = start + word.end()
        phrase = rest[start:end].rstrip(",")
        is_amount = _YEAR.fullmatch(phrase) and not _may_end(rest[start + len(phrase) :], language)
        is_date = not is_amount and _may_be_date(phrase, language)
        if is_date and (read := _read(phrase, language, at + end)):
            return read
    return None


def _may_end(rest: str, language: str) -> bool:
    return not rest.strip() or rest.startswith(",") or _words()[language].joining.match(rest) is not None


def _may_be_date(phrase: str, language: str) -> bool:
    """Return whether the phrase has a digit or the name of a month, so that parsing it is worth the time."""
    if any(sign.isdigit() for sign in phrase):
        return True
    return any(word.strip(".,'").casefold() in _months(language) for word in phrase.split())


@lru_cache(maxsize=1024)
def _read(phrase: str, language: str, at: int) -> _Date | None:
    """Return a parsed date, or None. Without a year in the phrase, the year is arbitrary. ``at``: see ``_Date``."""
    has_year = _YEAR.search(phrase) is not None
    for part in ("month", "year") if has_year else ("month",):
        date_data = _parser(language, part).get_date_data(phrase)
        periods = ("year",) if part == "year" else _STEPS
        if date_data.date_obj is None or date_data.period not in periods:
            continue
        day = date_data.date_obj.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
        return _Date(day, day + _STEPS[date_data.period] - timedelta(microseconds=1), has_year, at)
    return None


def _placed(date: _Date, beside: datetime, side: str) -> _Date:
    """Return the date with a year: its own, or the last ("since"), next ("until") or nearest ("from") to ``beside``."""
    if date.has_year:
        return date
    here = beside.year - date.begins.year
    before, same, after = (_moved(date, here + years) for years in (-1, 0, 1))
    if side == "since":
        return same if same.begins <= beside else before
    if side == "until":
        return same if same.ends >= beside else after
    return min((before, same, after), key=lambda each: abs(each.begins - beside))


def _moved(date: _Date, years: int) -> _Date:
    step = relativedelta(years=years)
    return date._replace(begins=date.begins + step, ends=date.ends + step)


@lru_cache(maxsize=1)
def _words() -> dict[str, _Words]:
    known = {}
    for language, sides in _WORDS.items():
        since, begin, until, joining = (frozenset(side.split("|")) for side in sides)
        joined = re.compile(rf"\s*(?:{_any_of(joining)}|[–-])\s+", re.I)
        known[language] = _Words(since, begin, until, joined)
    return known


@lru_cache(maxsize=1)
def _triggers() -> re.Pattern[str]:
    words = {word for each in _words().values() for word in each.since | each.begin | each.until}
    return re.compile(rf"(?<!\w)({_any_of(words)})(?!\w)\s*", re.I)


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


@lru_cache(maxsize=32)
def _months(language: str) -> frozenset[str]:
    info = default_loader.get_locale(language).info
    words = (word for month in month_name[1:] for word in info.get(month.lower(), ()))
    return frozenset(word.casefold().strip(".") for word in words)


@lru_cache(maxsize=64)
def _parser(language: str, part: str) -> DateDataParser:
    return DateDataParser(languages=[language], settings={"REQUIRE_PARTS": [part], **_SETTINGS})
