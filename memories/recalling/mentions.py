"""Phrases of a memory that also occur in the question. Does not access the database.

They are shown to people ("mentions “deadline”") and do not affect what is recalled. Two words are the same if their
first six letters are; of Chinese and Japanese text, pairs of characters are compared. Function words ("when", "my") are
ignored; ``function_words.txt`` has one language per line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("function_words.txt")
LOOKED_AT = 2000  # characters of the question and of the memory
SHOWN, LONGEST = 2, 40  # phrases, characters of one
STEM = 6
_HAN, _KANA, _HANGUL = r"\u3400-\u9fff\uf900-\ufaff", r"\u30a0-\u30ff", r"\uac00-\ud7a3"
_SIGNS = r"\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0966-\u0dff"  # combining characters
_WORD = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<kana>[{_KANA}]{{2,}})|(?P<hangul>[{_HANGUL}]{{2,}})"
    rf"|(?P<word>(?:[^\W_\u3040-\u309f{_HAN}{_KANA}{_HANGUL}]|[{_SIGNS}]){{2,}})"
)
_SAYS_NOTHING = frozenset("的是了吗嗎呢吧我你您他她它们們这這那在")
_ALEF = dict.fromkeys(map(ord, "أإآ"), "\N{ARABIC LETTER ALEF}")
_ARTICLE = "\N{ARABIC LETTER ALEF}\N{ARABIC LETTER LAM}"
_VOWELS = re.compile("[\u064b-\u0652\u0640]")

Span = tuple[int, int]


def mentioned(asked: str, memory: str) -> list[Span]:
    """Return where the memory mentions words of the question: the longest phrases, in text order. Takes linear time."""
    words = list(_words(asked[:LOOKED_AT]))
    idle = _idle({form for _span, form in words})
    keys = {_key(form) for _span, form in words if form not in idle}
    runs: list[Span] = []
    for (begin, end), form in _words(memory[:LOOKED_AT]):
        if form in idle or _key(form) not in keys:
            continue
        last = runs[-1] if runs else None
        if last and begin - last[1] < 2 and not memory[last[1] : begin].strip() and end - last[0] <= LONGEST:
            runs[-1] = (last[0], end)
        elif end - begin <= LONGEST:
            runs.append((begin, end))
    distinct = {memory[begin:end].casefold(): (begin, end) for begin, end in reversed(runs)}
    return sorted(sorted(distinct.values(), key=lambda run: run[0] - run[1])[:SHOWN])


@lru_cache(maxsize=2048)
def content_keys(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without function words."""
    forms = {form for _span, form in _words(text[:LOOKED_AT])}
    return frozenset(_key(form) for form in forms - _idle(forms))


def _words(text: str) -> Iterator[tuple[Span, str]]:
    """Yield each word in the form in which words are compared, with its position."""
    for found in _WORD.finditer(text):
        word, at = found[0], found.start()
        if found["han"]:
            for i in range(len(word) - 1):
                if _SAYS_NOTHING.isdisjoint(pair := word[i : i + 2]):
                    yield (at + i, at + i + 2), pair
        elif found["hangul"]:  # Korean endings are attached to the word
            yield (at, found.end()), word[:2]
        else:
            form = unicodedata.normalize("NFC", _VOWELS.sub("", word.casefold()).translate(_ALEF))
            if len(form) > 2 or form.isdigit() or found["kana"]:
                yield (at, found.end()), form


def _key(form: str) -> str:
    """Return the stem of a word, which its other forms share."""
    if len(form) > 4 and form.startswith(_ARTICLE):
        form = form[len(_ARTICLE) :]
    return form.removesuffix("s") if 4 <= len(form) < STEM else form[:STEM]


def _idle(forms: set[str]) -> frozenset[str]:
    """Return the function words of the language that most of ``forms`` belong to.

    A function word of one language may be a content word in another. If no language matches, return those of all.
    """
    hits = [len(words & forms) for words in function_words()]
    return frozenset().union(
        *(words for words, hit in zip(function_words(), hits, strict=True) if hit == max(hits))
    )


@lru_cache(maxsize=1)
def function_words() -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in FILE.read_text().splitlines()]
