"""The twelve layers as an ONNX model, made of the weights when they are loaded: in eight bits, which take a third of
the time of four and find the same (docs/recall.md).

ONNX is protobuf, of which writing needs two kinds of field; the package for it would be ten times the code it saves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm.e5.weights import EPSILON, HEADS, INNER, LAYERS, WIDTH, Weights, plain

MICROSOFT = "com.microsoft"  # onnxruntime's own operators
_TYPES = {"float32": 1, "int8": 3, "int32": 6}
_IR_VERSION, _OPSET = 9, 17


def model_of(weights: Weights) -> bytes:
    """Takes ``embedded`` (texts, tokens, 384) and ``mask`` (texts, tokens); gives ``states`` like the first."""
    nodes: list[bytes] = []
    tensors: list[bytes] = []
    state = "embedded"
    for number in range(LAYERS):
        after = "states" if number == LAYERS - 1 else f"x{number + 1}"
        layer = list(_layer(f"l{number}.", state, after))
        nodes += (_node(*each) for each in layer)
        tensors += _tensors_of(f"l{number}.", weights)
        state = after
    shape = ["texts", "tokens"]
    graph = [(1, node) for node in nodes] + [(2, b"e5")] + [(5, tensor) for tensor in tensors]
    graph += [(11, _value("embedded", 1, [*shape, WIDTH])), (11, _value("mask", 6, shape))]
    graph += [(12, _value("states", 1, [*shape, WIDTH]))]
    opsets = [(8, _message([(1, b""), (2, _OPSET)])), (8, _message([(1, MICROSOFT), (2, 1)]))]
    return _message([(1, _IR_VERSION), *opsets, (7, _message(graph))])


_Node = tuple[str, list[str], str, dict[str, Any]]


def _layer(own: str, state: str, after: str) -> Iterator[_Node]:
    """Attention and the inner net, each added to what came in and evened out."""
    for name in "qkv":
        yield _product(own, name, state)
    mixed = [own + "q", own + "k", own + "v", own + "qkv.b", "mask"]
    yield "MultiHeadAttention", mixed, own + "mixed", {"num_heads": HEADS}
    yield _product(own, "ao", own + "mixed")
    yield _evened(own, "ao", state, "aln", own + "attended")
    yield _product(own, "fi", own + "attended")
    yield "BiasGelu", [own + "fi", own + "fi.b"], own + "inner", {}
    yield _product(own, "fo", own + "inner")
    yield _evened(own, "fo", own + "attended", "oln", after)


def _product(own: str, name: str, of: str) -> _Node:
    return "DynamicQuantizeMatMul", [of, f"{own}{name}.w", f"{own}{name}.s"], own + name, {}


def _evened(own: str, name: str, state: str, by: str, out: str) -> _Node:
    given = [own + name, state, f"{own}{by}.w", f"{own}{by}.b", f"{own}{name}.b"]
    return "SkipLayerNormalization", given, out, {"epsilon": EPSILON}


def _tensors_of(own: str, weights: Weights) -> Iterator[bytes]:
    for name in ("q", "k", "v", "ao", "fi", "fo"):
        numbers = plain(weights.matrix(f"{own}{name}.w", INNER if name == "fi" else WIDTH))
        steps = np.abs(numbers).max(axis=1) / 127
        whole = np.rint(numbers / steps[:, None]).astype(np.int8)
        yield _tensor(f"{own}{name}.w", whole.T)
        yield _tensor(f"{own}{name}.s", steps)
    yield _tensor(own + "qkv.b", np.concatenate([weights.vector(f"{own}{name}.b") for name in "qkv"]))
    for name in ("ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b"):
        yield _tensor(own + name, weights.vector(own + name))


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _message(fields: Iterable[tuple[int, int | float | str | bytes]]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _node(operator: str, given: list[str], out: str, attributes: dict[str, Any]) -> bytes:
    named = [
        (
            5,
            _message(
                [(1, name), (2, value), (20, 1)]
                if isinstance(value, float)
                else [(1, name), (3, value), (20, 2)]
            ),
        )
        for name, value in attributes.items()
    ]
    return _message([*((1, name) for name in given), (2, out), (4, operator), *named, (7, MICROSOFT)])


def _tensor(name: str, numbers: NDArray[Any]) -> bytes:
    shape = [(1, length) for length in numbers.shape]
    return _message([*shape, (2, _TYPES[numbers.dtype.name]), (8, name), (9, numbers.tobytes())])


def _value(name: str, kind: int, shape: list[Any]) -> bytes:
    lengths = [(1, _message([(1 if isinstance(length, int) else 2, length)])) for length in shape]
    return _message([(1, name), (2, _message([(1, _message([(1, kind), (2, _message(lengths))]))]))])
