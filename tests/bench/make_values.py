"""Write the names of months, days and numbers that the near-duplicate guard recognizes.

python tests/bench/make_values.py   (needs babel and num2words, which the project does not)
"""

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from babel import dates
from num2words import num2words

LANGUAGES = ["en", "de", "es", "fr", "pt", "it", "nl", "pl", "tr", "ru", "ar", "hi", "zh", "ja", "ko", "vi"]
COUNTED = [*range(2, 32), *range(40, 101, 10), 1000]  # hundreds are combined by the reader
# Words of another language as well, too common to be read as a number or a month.
COMMON = frozenset(
    [
        "on",
        "bin",
        "hai",
        "ba",
        "due",
        "sei",
        "cem",
        "nul",
        "sto",
        "dez",
        "mil",
        "may",
        "om",
        "an",
        "năm",
        "mai",
    ]
)


def fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


def put(table: dict[str, set[int]], word: str, value: int) -> None:
    word = fold(word)
    if len(word) > 1 and word.isalpha() and word not in COMMON:
        table.setdefault(word, set()).add(value)


def clear(table: Mapping[str, set[int]]) -> dict[str, int]:
    return {word: next(iter(values)) for word, values in sorted(table.items()) if len(values) == 1}


def main() -> None:
    months: dict[str, set[int]] = {}
    days: dict[str, set[int]] = {}
    numbers: dict[str, set[int]] = {}
    for language in LANGUAGES:
        for context in ("format", "stand-alone"):
            for value, name in dates.get_month_names("wide", context, language).items():
                put(months, name, value)
            for value, name in dates.get_day_names("wide", context, language).items():
                for form in (name, name + "s", name.split("-")[0]):
                    put(days, form, value)
        if language in ("hi", "zh"):
            continue  # not supported by num2words; Han numerals are read by their own rule
        for value in COUNTED:
            put(numbers, num2words(value, lang=language), value)
            if value in (100, 1000):  # "one hundred"
                put(numbers, num2words(value, lang=language).split()[-1], value)
            if language == "en":
                put(numbers, num2words(value, lang=language, to="ordinal"), value)
    tables = {"months": {**clear(months), "May": 5}, "days": clear(days), "numbers": clear(numbers)}
    target = Path(__file__).parents[2] / "memories/judging/duplicates/values.json"
    target.write_text(json.dumps(tables, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
