"""The check that every name and number of a statement occurs in a person's own words.

A date may be computed from a word such as "tomorrow", and a year may be added to a day.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

MOST_SAID = 200_000  # characters of the newest messages that are read
_STEM = 4  # letters of a name that must agree, because many languages decline names
_BEFORE, _AFTER = timedelta(days=62), timedelta(days=400)  # around today, for dates computed from words
_NUMBER = re.compile(r"\d+(?:[.,:'\u2019\u00a0\u202f/-]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f]\d{3})+")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_BEGINNING = re.compile(r"(?:^|[.!?:;…\"“„«(]\s*)$")
# Capitalized words that are no names: months and days, and words for the person.
_CALENDAR = """
january february march april may june july august september october november december
januar februar märz mai juni juli oktober dezember
monday tuesday wednesday thursday friday saturday sunday
montag dienstag mittwoch donnerstag freitag samstag sonntag
"""
_OWN = frozenset({"user", "users", "user's", "i"})
_DATES = frozenset(_CALENDAR.split())
# Words from which a date is computed: today, tomorrow, yesterday; next, last, in, ago; day, week, month, year;
# weekdays.
_WHOLE = """
today tonight tomorrow yesterday next last this coming ago since day days week weeks month months year years weekend
heute morgen gestern hoy mañana ayer día días dia dias lunes martes miércoles jueves viernes mes meses año años
demain hier mois ans année jour jours hoje amanhã ontem mês ano anos oggi domani ieri mese mesi anno anni
vandaag gisteren volgende vorige jaar jutro wczoraj dni yar\u0131n dün gelecek geçen önümüzdeki haftaya gün günü
pazartesi sal\u0131 çarşamba perşembe сегодня завтра вчера среду четверг hôm ngày mai tuần tháng năm thứ
"""
_BEGIN = """
übermorgen vorgestern nächst letzt kommend diese woche monat jahr próxim proxim pasad semana aujourd prochain derni
semaine passad scors settiman giorn maand dag dziś dzis następn przyszł tygo bugün cuma послезавтра следующ прошл
недел месяц год дн
"""
_BEGINNINGS = tuple(_BEGIN.split())
_ENDINGS = ("day", "tag", "tage", "tagen", "di", "dì", "-feira", "ник", "ницу", "ница", "ницы")
_RELATIVE_WORDS = frozenset(_WHOLE.split())
_RELATIVE_SIGNS = re.compile(
    "اليوم|غدا|أمس|القادم|الماضي|أسبوع|شهر|سنة|आज|कल|अगले|पिछले|सप्ताह|महीने|साल|दिन|वार"
    "|[今明后昨前]天|下周|上周|下个|上个|星期|今日|明日|昨日|[来先]週|[来先]月|曜|오늘|내일|모레|어제|다음|지난|요일"
)


def is_grounded(statement: str, *, said: Iterable[str], today: date | None = None, names: str = "") -> bool:
    """Return whether every name and number of a statement occurs in ``said`` or ``names``, the speaker's names.

    ``today``: the day of the conversation, from which "tomorrow" may have become a date.
    """
    there, stems, whole, is_relative = _read(" ".join([names, *said])[:MOST_SAID])
    free: set[str] = set()
    if today is not None:
        statement, free = _without_computed_dates(_plain(statement), is_relative, there, today)
    if numbers_in(statement) - there - free:
        return False
    return all(name[:_STEM] in stems or name in whole for name in names_in(statement))


@functools.lru_cache(maxsize=4)
def _read(raw_text: str) -> tuple[frozenset[str], frozenset[str], str, bool]:
    """Return a text's numbers, stems, words joined by spaces, and whether it has a word such as "tomorrow"."""
    text = _plain(raw_text)
    words = [word.casefold() for word in _WORD.findall(text)]
    stems = frozenset(word[:_STEM] for word in words)
    return frozenset(numbers_in(text)), stems, " ".join(words), _is_relative(set(words), text)


def names_in(text: str) -> set[str]:
    """Return the likely names, in lower case: words with a capital inside a sentence, or after their first letter."""
    plain = _plain(text)
    names = set()
    for match in _WORD.finditer(plain):
        word = match[0]
        inside = word[0].isupper() and not _BEGINNING.search(plain, max(0, match.start() - 3), match.start())
        if inside or any(letter.isupper() for letter in word[1:]):
            names.add(word.casefold())
    return names - _OWN - _DATES


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text as digits: 4,000 is "4000". Dates, times and fractions are split."""
    numbers = set()
    for written in _NUMBER.findall(_plain(text)):
        parts = [written] if _GROUPED.fullmatch(written) else re.findall(r"\d+", written)
        for part in parts:
            digits = "".join(str(unicodedata.digit(sign)) for sign in part if sign.isdigit())
            numbers.add(digits.lstrip("0") or "0")
    return numbers


def _without_computed_dates(
    statement: str, is_relative: bool, there: frozenset[str], today: date
) -> tuple[str, set[str]]:
    """Remove dates that may be computed from a word such as "tomorrow", or completed by a year, from the statement.

    Return the rest, and the numbers that it may contain although the person did not use them. ``is_relative``: the
    person used a word such as "tomorrow". ``there``: the numbers that the person used.
    """
    first, last = today - _BEFORE, today + _AFTER
    years = {str(year) for year in range(first.year, last.year + 1)}

    def without(match: re.Match[str]) -> str:
        try:
            day = date(*map(int, match.groups()))
        except ValueError:
            return match[0]
        is_near = first <= day <= last and (is_relative or str(day.day) in there)
        return "" if is_near else match[0]

    statement = _ISO.sub(without, statement)
    # A computed day stands next to the name of a month. Without one, a number is just a number.
    has_month = any(word.casefold() in _DATES for word in _WORD.findall(statement))
    days = {str(day) for day in range(1, 32)} if is_relative and has_month else set()
    return statement, years | days


def _is_relative(words: set[str], text: str) -> bool:
    named = not words.isdisjoint(_RELATIVE_WORDS) or bool(_RELATIVE_SIGNS.search(text))
    return named or any(word.startswith(_BEGINNINGS) or word.endswith(_ENDINGS) for word in words)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


# Recognition of messages that no model needs to read: "ok thanks", "Guten Morgen!", "👍". courtesies.txt has four
# paragraphs of words: thanks, greetings and interjections; those that may confirm a question and mean nothing else;
# those by which a question asks for confirmation or to remember something; those that may accompany the third.

LONGEST = 60  # characters
_WORDS = re.compile(r"[^\W_]+")
_ASKS = re.compile("[?\uff1f\u061f]")
# The answers to a question that deny it, or only acknowledge it.
_NO_YES = frozenset({"no", "nope", "ok", "okay", "k", "kk", "got", "fine", "alright"})


def says_nothing(text: str, before: Sequence[tuple[str, str]] = ()) -> bool:
    """Return whether the message is only a courtesy. A bare "yes" to a question at the end of ``before`` is none."""
    text = unicodedata.normalize("NFC", text).strip().casefold()
    if len(text) > LONGEST:
        return False
    courtesies, agreements, *_questions = _words()
    words = set(_WORDS.findall(text))
    if not words <= courtesies | agreements:
        return False
    role, last_text = before[-1] if before else ("", "")
    is_asked = role == "assistant" and bool(_ASKS.search(last_text))
    return not is_asked or bool(words & courtesies) or not words


def agrees(text: str) -> bool:
    """Return whether a short message begins with "yes" and contains no question."""
    text = unicodedata.normalize("NFC", text).strip().casefold()
    words = _WORDS.findall(text)
    if not words or len(text) > LONGEST or _ASKS.search(text):
        return False
    return words[0] in _words()[1] - _NO_YES


def asks_back(question: str) -> bool:
    """Return whether a question only asks for confirmation or to remember something, such as "Is that right?"."""
    words = set(_WORDS.findall(unicodedata.normalize("NFC", question).casefold().replace("\u2019", "'")))
    _courtesies, _agreements, asking, beside = _words()
    return bool(words & asking) and words <= asking | beside


@functools.cache
def _words() -> tuple[frozenset[str], ...]:
    """Return the words of courtesies.txt as one set for each of its four paragraphs."""
    text = Path(__file__).with_name("courtesies.txt").read_text(encoding="utf-8").casefold()
    return tuple(frozenset(_WORDS.findall(part)) for part in text.split("\n\n"))
