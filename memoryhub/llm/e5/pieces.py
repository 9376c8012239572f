"""A text in the pieces of the model's vocabulary: the most likely cut by the pieces' scores (SentencePiece unigram).

The vocabulary is a sorted table of 250,000 hashes, 4 MB; as a dictionary, or in the library for it, it is 40 to 230.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

BEGIN, END, UNKNOWN = 0, 2, 3
SPECIAL = (0, 1, 2, 3, 250_001)  # never found in a text, whoever writes "<s>"
LONGEST = 16  # characters of a piece
BLANK = "▁"  # what a word begins with
UNKNOWN_COSTS = 10.0  # below the least likely piece
AT_ONCE = 10_000  # pieces hashed, so that loading takes little memory
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_SPACES = dict.fromkeys(map(ord, "\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"), " ")
_CLEANED = dict.fromkeys([*range(9), 11, *range(14, 32), 127, 143, 159]) | _SPACES

Hashes = NDArray[np.uint64]


class Pieces:
    def __init__(self, begins: NDArray[np.uint32], scores: NDArray[np.float32], text: bytes) -> None:
        parts = [begins[at : at + AT_ONCE + 1] for at in range(0, len(scores), AT_ONCE)]
        hashes = np.concatenate([_hashes_of(text[part[0] : part[-1]], part - part[0]) for part in parts])
        order = np.argsort(hashes).astype(np.int32)
        self._order = order[~np.isin(order, SPECIAL)]
        self._sorted = hashes[self._order]
        self._scores = scores.astype(np.float64)
        self._unknown = float(scores.min()) - UNKNOWN_COSTS

    def cut(self, text: str) -> tuple[list[int], list[str]]:
        """The ids of its pieces and the pieces themselves, as they stand in the cleaned text; without the marks."""
        cleaned = BLANK + BLANK.join(unicodedata.normalize("NFKC", text).translate(_CLEANED).split())
        before = self._likeliest(cleaned)
        ids, pieces = [], []
        end = len(cleaned)
        while end:
            start, piece = before[end]
            ids.append(piece)
            pieces.append(cleaned[start:end])
            end = start
        return ids[::-1], pieces[::-1]

    def _likeliest(self, text: str) -> list[tuple[int, int]]:
        """Of the best cut that ends at each place the last piece: where it begins, and which."""
        best = [0.0] + [-np.inf] * len(text)
        before = [(0, UNKNOWN)] * (len(text) + 1)
        at = 0
        starts, ends, ids, scores = self._found(text)
        for start in range(len(text)):
            here = best[start]
            if here + self._unknown > best[start + 1]:
                best[start + 1], before[start + 1] = here + self._unknown, (start, UNKNOWN)
            while at < len(starts) and starts[at] == start:
                score, end = here + scores[at], ends[at]
                if score > best[end]:
                    best[end], before[end] = score, (start, ids[at])
                at += 1
        return before

    def _found(self, text: str) -> tuple[list[int], list[int], list[int], list[float]]:
        """Every stretch of the text that is a piece, by where it begins."""
        prefix, inverse = _prefixes(text)
        starts = np.arange(len(text))[:, None]
        ends = starts + np.arange(1, LONGEST + 1)
        inside = np.minimum(ends, len(text))
        hashes = (prefix[inside] - prefix[starts]) * inverse[starts]
        places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        rows, columns = np.nonzero((self._sorted[places] == hashes) & (ends <= len(text)))
        ids = self._order[places[rows, columns]]
        return rows.tolist(), (rows + columns + 1).tolist(), ids.tolist(), self._scores[ids].tolist()


def _hashes_of(text: bytes, begins: NDArray[np.uint32]) -> Hashes:
    """Of the pieces that begin at these bytes of the text; the last is its end."""
    begin_a_character = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
    starts = np.concatenate([[0], np.cumsum(begin_a_character)])[begins]
    prefix, inverse = _prefixes(text.decode())
    hashes: Hashes = (prefix[starts[1:]] - prefix[starts[:-1]]) * inverse[starts[:-1]]
    return hashes


def _prefixes(text: str) -> tuple[Hashes, Hashes]:
    """Sums of the characters times powers of a base, before each place, and that base's inverse powers.

    Equal stretches give equal (difference · inverse power at their beginning), all modulo 2**64.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), "<u4").astype(np.uint64)
    powers = np.full(len(codes) + 1, _BASE, np.uint64)
    inverses = np.full(len(codes) + 1, pow(_BASE, -1, 2**64), np.uint64)
    powers[:1] = inverses[:1] = 1
    powers, inverses = np.cumprod(powers), np.cumprod(inverses)
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum((codes + np.uint64(1)) * powers[:-1])]), inverses
