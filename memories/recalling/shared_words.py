"""Words that texts share: phrases of a memory that occur in the question, and what both have in common in numbers.

Two words are the same if their first six letters are; of Chinese and Japanese text, pairs of characters are compared.
Function words ("when", "my") are ignored; ``function_words.txt`` has one language per line. The phrases are shown to
people (`mentions “deadline”`), the numbers are features of the relevance. Does not access the database.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FUNCTION_WORDS = Path(__file__).with_name("function_words.txt")
MOST_COMPARED = 2000  # characters of each text
SHOWN, LONGEST = 2, 40  # phrases, characters of one
STEM = 6
_HAN, _KANA, _HANGUL = r"\u3400-\u9fff\uf900-\ufaff", r"\u30a0-\u30ff", r"\uac00-\ud7a3"
_SIGNS = r"\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0966-\u0dff"  # combining characters
_TOKEN = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<kana>[{_KANA}]{{2,}})|(?P<hangul>[{_HANGUL}]{{2,}})"
    rf"|(?P<word>(?:[^\W_\u3040-\u309f{_HAN}{_KANA}{_HANGUL}]|[{_SIGNS}]){{2,}})"
)
_SAYS_NOTHING = frozenset("的是了吗嗎呢吧我你您他她它们們这這那在")
_ALEF = dict.fromkeys(map(ord, "أإآ"), "\N{ARABIC LETTER ALEF}")
_ARTICLE = "\N{ARABIC LETTER ALEF}\N{ARABIC LETTER LAM}"
_VOWELS = re.compile("[\u064b-\u0652\u0640]")
_ANY_WORD = re.compile(r"[^\W_]+")

Span = tuple[int, int]


def mentioned(question: str, memory: str) -> list[Span]:
    """Return the positions of the longest phrases in the memory that also occur in the question, in text order."""
    words = list(_words(question[:MOST_COMPARED]))
    idle = _function_words_of({form for _span, form in words})
    keys = {_key(form) for _span, form in words if form not in idle}
    runs: list[Span] = []
    for (begin, end), form in _words(memory[:MOST_COMPARED]):
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
    """Return the stems of a text's words, without function words."""
    forms = {form for _span, form in _words(text[:MOST_COMPARED])}
    return frozenset(_key(form) for form in forms - _function_words_of(forms))


def _words(text: str) -> Iterator[tuple[Span, str]]:
    """Yield each word's position and its normalized form."""
    for match in _TOKEN.finditer(text):
        word, at = match[0], match.start()
        if match["han"]:
            for i in range(len(word) - 1):
                if _SAYS_NOTHING.isdisjoint(pair := word[i : i + 2]):
                    yield (at + i, at + i + 2), pair
        elif match["hangul"]:  # Korean endings are attached to the word
            yield (at, match.end()), word[:2]
        else:
            form = unicodedata.normalize("NFC", _VOWELS.sub("", word.casefold()).translate(_ALEF))
            if len(form) > 2 or form.isdigit() or match["kana"]:
                yield (at, match.end()), form


def _key(form: str) -> str:
    """Return what is compared of a normalized word: its first six letters, without an Arabic article.

    A word of four or five letters loses a final "s"; a pair of Chinese or Korean characters stays as it is.
    """
    if len(form) > 4 and form.startswith(_ARTICLE):
        form = form[len(_ARTICLE) :]
    return form.removesuffix("s") if 4 <= len(form) < STEM else form[:STEM]


def _function_words_of(forms: set[str]) -> frozenset[str]:
    """Return the function words of the language to which most of the words ``forms`` belong.

    If no language matches, return those of all languages.
    """
    hits = [len(words & forms) for words in function_words()]
    return frozenset().union(
        *(words for words, hit in zip(function_words(), hits, strict=True) if hit == max(hits))
    )


@lru_cache(maxsize=1)
def function_words() -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in FUNCTION_WORDS.read_text().splitlines()]


def shared_words(text: str, contents: Sequence[str]) -> dict[str, Array]:
    """Return the features about the words, and parts of words, that each statement has in common with the message."""
    message_keys, parts = content_keys(text), _parts(text[:MOST_COMPARED])
    own = [content_keys(content) & message_keys for content in contents]
    words = Counter(key for keys in own for key in keys)
    own_parts = [_parts(content[:MOST_COMPARED]) for content in contents]
    frequency = Counter(part for each in own_parts for part in each & parts)
    whole = sum(1 / (1 + frequency[part]) for part in parts) or 1.0
    carried = np.array(
        [sum(1 / (1 + frequency[part]) for part in each & parts) / whole for each in own_parts]
    )
    return {
        "shared_words": np.array([len(keys) for keys in own]),
        "covered_message": np.array([len(keys) / max(1, len(message_keys)) for keys in own]),
        "covered_statement": np.array(
            [
                len(keys) / max(1, len(content_keys(content)))
                for keys, content in zip(own, contents, strict=True)
            ]
        ),
        "rarest": np.array([max((1 / words[key] for key in keys), default=0.0) for keys in own]),
        "parts": carried,
        "behind_parts": carried.max() - carried,
        "parts_of_statement": np.array([len(each & parts) / max(1, len(each)) for each in own_parts]),
    }


@lru_cache(maxsize=2048)
def _parts(text: str) -> frozenset[str]:
    """Return the 4-grams of each word with its beginning marked, or pairs of characters of short non-ASCII words."""
    parts: set[str] = set()
    for word in _ANY_WORD.findall(text.casefold()):
        if word.isascii() or len(word) > 4:
            marked = f"^{word}"
            parts |= {marked[at : at + 4] for at in range(max(1, len(marked) - 3))}
        else:
            parts |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
    return frozenset(parts)
