"""Numbers, dates and days, however they are written: two statements that differ in one say different things.

The names of months, days and numbers are data (values.json, made by tests/bench/make_values.py from CLDR and
num2words); there is no list of a language here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)
_GROUPED = re.compile(r"(?<=\d)[.,'\u00a0\u202f ](?=\d{3}(?!\d))")
_FULL_HOUR = re.compile(r"(?<=\d)[:.]00\b")
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[一二三四五六七八九十百千两]+")
_HAN_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}


@dataclass(frozen=True)
class Values:
    digits: list[int]  # in the order of the text, those of a date as day, month, year
    words: list[int]  # numbers and months written as words, in the order of the text
    days: frozenset[int]


def values_of(text: str) -> Values:
    plain = _ISO.sub(r"\3 \2 \1", _CLOCK.sub(_hour, unicodedata.normalize("NFKC", text)))
    plain = _FULL_HOUR.sub("", _GROUPED.sub("", plain))
    names = _names()
    words = [word if word == "May" else word.casefold() for word in _WORD.findall(plain)]
    said = _together([names["numbers"].get(word, 0) for word in words])
    said += [names["months"][word] for word in words if word in names["months"]]
    said += [_han(match[0]) for match in _HAN.finditer(plain)]
    days = frozenset(names["days"][word] for word in words if word in names["days"])
    return Values([int(run[:15]) for run in _DIGITS.findall(plain)], said, days)


def values_differ(a: Values, b: Values) -> bool:
    """True when one has a number, month or day of the week that the other has not, or dates stand turned around.

    "30" and "thirty" are one; a number in words that is missing on the other side may be an article or a chance
    likeness of another language, so it counts only against another such word.
    """
    if a.days and b.days and a.days != b.days:
        return True
    ours, theirs = Counter(a.digits), Counter(b.digits)
    said, other = Counter(a.words), Counter(b.words)
    more, less = ours - theirs, theirs - ours
    if more - other or less - said:
        return True
    if (ours == theirs and a.digits != b.digits) or (said == other and a.words != b.words):
        return True
    return bool(said - other - less) and bool(other - said - more)


def value_of(word: str) -> str:
    """A number in digits, if the word is one, 06 as 6; else the word, in lower case."""
    word = word.casefold()
    if word.isdecimal():
        return word.lstrip("0") or "0"
    value = _names()["numbers"].get(word)
    return word if value is None else str(value)


def is_date(word: str) -> bool:
    """Return True for the name of a month or a day of the week."""
    return word in _names()["months"] or word in _names()["days"] or word == "may"


def _together(values: list[int]) -> list[int]:
    """Two, hundred: 200; twenty, five: 25. Words that are no number are 0, and end one."""
    found: list[int] = []
    last = 0
    for value in values:
        if last and value in (100, 1000) and last < value:
            found[-1] *= value
        elif 20 <= last < 100 and last % 10 == 0 and 0 < value < 10:
            found[-1] += value
        elif value:
            found.append(value)
        last = found[-1] if value else 0
    return found


def _hour(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    return f" {hour}:{match[2] or '00'} "


def _han(signs: str) -> int:
    total = current = 0
    for sign in signs:
        if sign in _HAN_TENS:
            total += max(current, 1) * _HAN_TENS[sign]
            current = 0
        else:
            current = _HAN_DIGITS[sign]
    return total + current


@cache
def _names() -> dict[str, dict[str, int]]:
    names: dict[str, dict[str, int]] = json.loads(
        Path(__file__).with_name("values.json").read_text(encoding="utf-8")
    )
    return names
