"""Word-by-word comparison of two statements, by the encoder's states and by the values they contain.

Each word that only one statement has is compared with the most similar word of the other. Numbers, dates and days are
compared in any spelling. The words for them are in values.json, which tests/bench/make_values.py generates.
"""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import numpy as np

from memories.judging.encoder_interface import Read, weights
from memoryhub.llm.base import Vectors

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
    digits: list[int]  # in the order of the text; a date as day, month, year
    words: list[int]  # numbers and months written as words, in the order of the text
    days: frozenset[int]


def values_of(text: str) -> Values:
    plain = _ISO.sub(r"\3 \2 \1", _CLOCK.sub(_hour, unicodedata.normalize("NFKC", text)))
    plain = _FULL_HOUR.sub("", _GROUPED.sub("", plain))
    names = _names()
    words = [word if word == "May" else word.casefold() for word in _WORD.findall(plain)]
    word_values = _together([names["numbers"].get(word, 0) for word in words])
    word_values += [names["months"][word] for word in words if word in names["months"]]
    word_values += [_han(match[0]) for match in _HAN.finditer(plain)]
    days = frozenset(names["days"][word] for word in words if word in names["days"])
    return Values([int(run[:15]) for run in _DIGITS.findall(plain)], word_values, days)


def values_differ(a: Values, b: Values) -> bool:
    """Return whether the texts differ in a number, month or day of the week, or in the order of these values.

    Days of the week differ only if both texts name some. A number word that the other text lacks, which may be an
    article, counts only if the other text also has a number word of its own.
    """
    if a.days and b.days and a.days != b.days:
        return True
    ours, theirs = Counter(a.digits), Counter(b.digits)
    our_words, other = Counter(a.words), Counter(b.words)
    more, less = ours - theirs, theirs - ours
    if more - other or less - our_words:
        return True
    if (ours == theirs and a.digits != b.digits) or (our_words == other and a.words != b.words):
        return True
    return bool(our_words - other - less) and bool(other - our_words - more)


def value_of(word: str) -> str:
    """Return a number or number word as digits without leading zeros, and any other word in lower case."""
    word = word.casefold()
    if word.isdecimal():
        return word.lstrip("0") or "0"
    value = _names()["numbers"].get(word)
    return word if value is None else str(value)


def is_date(word: str) -> bool:
    return word in _names()["months"] or word in _names()["days"] or word == "may"


def _together(values: list[int]) -> list[int]:
    """Combine the values of consecutive number words: 2 and 100 become 200. Words that are no numbers have a 0."""
    numbers: list[int] = []
    last = 0
    for value in values:
        if last and value in (100, 1000) and last < value:
            numbers[-1] *= value
        elif 20 <= last < 100 and last % 10 == 0 and 0 < value < 10:
            numbers[-1] += value
        elif value:
            numbers.append(value)
        last = numbers[-1] if value else 0
    return numbers


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
    text = Path(__file__).with_name("values.json").read_text(encoding="utf-8")
    names: dict[str, dict[str, int]] = json.loads(text)
    return names


_APOSTROPHES = "'\u2019"
_SAME = 0.98  # minimum similarity of equal words, in any position
_LOWEST = 4  # number of lowest similarities that are features
MEASURES = 30  # number of features of a pair, before those of each dimension


@dataclass(frozen=True)
class Words:
    words: list[str]
    vectors: Vectors  # (words, 384), centred on the mean of all texts and normalized
    whole: Vectors  # the mean of the states
    names: list[str]  # likely names, recognized by capitals
    capitals: frozenset[str]  # capitalized words, including first words of sentences and German nouns

    @property
    def direction(self) -> Vectors:
        """Return the mean of the states minus the mean over all texts, as a unit vector."""
        own = self.whole - head()["centre"]
        pointing: Vectors = own / max(float(np.linalg.norm(own)), 1e-6)
        return pointing


def words_of(read: Read) -> Words:
    """Return the words of an encoded text, joined from their pieces (tokens), without punctuation."""
    centre = head()["centre"]
    words: list[str] = []
    groups: list[list[int]] = []
    joins = False
    starts: list[bool] = []
    for place, piece in enumerate(read.pieces):
        word = "".join(sign for sign in piece.casefold() if _is_of_a_word(sign)).replace("\u2019", "'")
        if not word.strip("'"):
            joins = bool(word) and joins
            if joins:
                words[-1] += word
            continue
        if joins and not piece.startswith("▁") and not _stands_alone(word) and not _stands_alone(words[-1]):
            words[-1] += word
            groups[-1].append(place)
        else:
            words.append(word)
            starts.append(piece.lstrip("▁")[:1].isupper())
            groups.append([place])
        joins = _is_of_a_word(piece[-1])
    capitals = {value_of(word) for word, starts_so in zip(words, starts, strict=True) if starts_so}
    states = read.vectors.astype(np.float32)
    rows = [states[group].mean(axis=0) - centre for group in groups]
    vectors = np.stack(rows) if rows else np.empty((0, len(centre)), np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    whole = states.mean(axis=0) if len(states) else centre
    return Words([value_of(word) for word in words], vectors, whole, _names_in(read), frozenset(capitals))


def _is_of_a_word(sign: str) -> bool:
    # Vowel signs of Hindi.
    return sign.isalnum() or sign in _APOSTROPHES or unicodedata.category(sign)[0] == "M"


def _stands_alone(word: str) -> bool:
    """Return whether the word ends in Han, kana or Thai, which are written without spaces."""
    return "\u3040" <= word[-1] <= "\u9fff" or "\u0e00" <= word[-1] <= "\u0e7f"


def same_words(a: Words, b: Words) -> bool:
    """Return whether the texts have the same words in the same order, or are the same after a move (``is_moved``)."""
    return a.words == b.words or is_moved(a.words, b.words)


def measure(a: Words, b: Words) -> Vectors:
    """Return the feature vector of a pair, which is the same for (a, b) and (b, a). Both texts must have words.

    After ``MEASURES`` features it has, for each dimension, the absolute difference and the product of the mean vectors
    of the words that only one text has.
    """
    if a.words > b.words:
        a, b = b, a
    likeness = a.vectors @ b.vectors.T
    equal = np.array([[word == other for other in b.words] for word in a.words])
    similarities = _similarity_in_context(equal, likeness)
    likeness = np.where(equal, np.maximum(likeness, _SAME), likeness)
    only_a = [at for at, word in enumerate(a.words) if word not in b.words]
    only_b = [at for at, word in enumerate(b.words) if word not in a.words]
    low_a = sorted(likeness.max(axis=1)[only_a].tolist())
    low_b = sorted(likeness.max(axis=0)[only_b].tolist())
    lows = sorted(low_a + low_b)
    lowest = (lows + [1.0] * _LOWEST)[:_LOWEST]
    first_a, first_b = [*low_a, 1.0][0], [*low_b, 1.0][0]
    slots, longest = _slots(a.words, b.words)
    both = len(a.words) + len(b.words)
    own_a, own_b = _mean(a.vectors[only_a]), _mean(b.vectors[only_b])
    one_slot = slots <= 1
    measures = np.array(
        [
            cosine(a.whole, b.whole) * 20 - 18,
            *lowest,
            (first_a + first_b) / 2,
            max(first_a, first_b),
            float(np.mean(lows)) if lows else 1.0,
            len(lows) / both,
            min(slots, 5) / 5,
            slots == 1,
            slots == 0,
            one_slot and longest <= 1,
            one_slot and longest <= 2,
            min(longest, 6) / 6,
            *_order_features(a.words, b.words, same=not lows),
            abs(len(only_a) - len(only_b)) / both,
            not only_a or not only_b,
            cosine(own_a, own_b) if lows else 1.0,
            one_slot * lowest[0],
            slots == 2,
            _unit_similarity(a.words, b.words, likeness),
            *similarities,
            equal.any(axis=1).sum() / both,
            _names_exchanged(a, b),
        ],
        dtype=np.float32,
    )
    return np.concatenate([measures, np.abs(own_a - own_b), own_a * own_b])


def _similarity_in_context(equal: Vectors, likeness: Vectors) -> list[float]:
    """Return the two lowest similarities in context of words that both texts have, and the mean similarity."""
    similarities = np.sort(np.where(equal, likeness, -1.0).max(axis=1)[equal.any(axis=1)])
    return [*[*similarities.tolist(), 1.0, 1.0][:2], float(similarities.mean()) if len(similarities) else 0.0]


def _order_features(a: list[str], b: list[str], *, same: bool) -> list[float]:
    """Return features of how much the order of the common words differs. ``same``: both texts have the same words."""
    turned, moved = count_turned(a, b), is_moved(a, b)
    return [min(turned, 8) / 8, turned > 0, turned > 0 and same and not moved, moved]


def _names_exchanged(a: Words, b: Words) -> bool:
    return [name for name in a.names if name in b.names] != [name for name in b.names if name in a.names]


def _names_in(read: Read) -> list[str]:
    """Return the capitalized words but "I", in lower case, as likely names; none if many are, as in German."""
    starts = [piece[1:] for piece in read.pieces if piece.startswith("▁") and piece[1:]]
    names = [word for word in starts[1:] if word[0].isupper() and word != "I"]
    first = [word for word in starts[:1] if word[0].isupper()]
    return [word.casefold() for word in first + names] if 3 * len(names) <= len(starts) else []


def _mean(vectors: Vectors) -> Vectors:
    return vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1], np.float32)


def cosine(a: Vectors, b: Vectors) -> float:
    return float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-6))


def _slots(a: list[str], b: list[str]) -> tuple[int, int]:
    """Return the number of stretches in which the two word lists differ, and the length in words of the longest."""
    slots = [code for code in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if code[0] != "equal"]
    return len(slots), max((max(a2 - a1, b2 - b1) for _, a1, a2, b1, b2 in slots), default=0)


def count_turned(a: list[str], b: list[str]) -> int:
    """Count the pairs of common words whose order differs between the texts, without numbers and repeated words."""
    places = [b.index(word) for word in a if a.count(word) == b.count(word) == 1 and not word.isdigit()]
    return sum(earlier > later for at, later in enumerate(places) for earlier in places[:at])


def is_moved(a: list[str], b: list[str]) -> bool:
    """Return whether moving the end of `a` to its front gives `b`: "I moved in March", "In March I moved"."""
    return a != b and len(a) == len(b) > 3 and any(a[at:] + a[:at] == b for at in range(2, len(a) - 1))


def _unit_similarity(a: list[str], b: list[str], likeness: Vectors) -> float:
    """Return the lowest similarity between words that follow the same number in both texts, such as units."""
    similarities = [
        float(likeness[at + 1, b.index(word) + 1])
        for at, word in enumerate(a[:-1])
        if word.isdigit() and word in b[:-1]
    ]
    return min(similarities, default=1.0)


def head() -> dict[str, Vectors]:
    """Return the weights of the networks and the mean of all states, as fitted by tests/bench/fit_duplicates.py."""
    return weights(Path(__file__).with_name("head.npz"))
