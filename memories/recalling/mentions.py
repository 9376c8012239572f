"""What a memory mentions of what was asked: the words of both, as they stand in the memory. Pure.

They are for people to read ("mentions “deadline”"), and change nothing of what is found. A word is the same in another
form if it begins with the same six letters; of Chinese and Japanese characters two that stand together are one. Words
that say nothing by themselves ("when", "my") are none, in the languages of ``function_words.txt``, a line each.
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
_SIGNS = (
    r"\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0966-\u0dff"  # parts of letters that are none by themselves
)
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
    """Where the memory mentions something of what was asked: the longest phrases, in their order. Linear."""
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
    """What is the same of all forms of each word of a text, without function words."""
    forms = {form for _span, form in _words(text[:LOOKED_AT])}
    return frozenset(_key(form) for form in forms - _idle(forms))


def _words(text: str) -> Iterator[tuple[Span, str]]:
    """As they are compared, each with its place."""
    for found in _WORD.finditer(text):
        word, at = found[0], found.start()
        if found["han"]:
            for i in range(len(word) - 1):
                if _SAYS_NOTHING.isdisjoint(pair := word[i : i + 2]):
                    yield (at + i, at + i + 2), pair
        elif found["hangul"]:  # its endings are written to it
            yield (at, found.end()), word[:2]
        else:
            form = unicodedata.normalize("NFC", _VOWELS.sub("", word.casefold()).translate(_ALEF))
            if len(form) > 2 or form.isdigit() or found["kana"]:
                yield (at, found.end()), form


def _key(form: str) -> str:
    """What is the same of all forms of a word."""
    if len(form) > 4 and form.startswith(_ARTICLE):
        form = form[len(_ARTICLE) :]
    return form.removesuffix("s") if 4 <= len(form) < STEM else form[:STEM]


def _idle(forms: set[str]) -> frozenset[str]:
    """The function words of the language that most of these are of: in another they may say something. Of all
    languages where they are of none.
    """
    hits = [len(words & forms) for words in function_words()]
    return frozenset().union(
        *(words for words, hit in zip(function_words(), hits, strict=True) if hit == max(hits))
    )


@lru_cache(maxsize=1)
def function_words() -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in FILE.read_text().splitlines()]
