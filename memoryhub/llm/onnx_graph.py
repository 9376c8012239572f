"""The ONNX model of a BERT encoder, built from its weights and written as protobuf.

Only two kinds of protobuf field are needed, and the protobuf package would be ten times as large.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

from memoryhub.llm.bert import EPSILON, HEADS, WIDTH, Layer

MICROSOFT = "com.microsoft"  # onnxruntime's own operators
_TYPES = {"float32": 1, "int8": 3, "int32": 6}
_IR_VERSION, _OPSET = 9, 17


def model_of(layers: Iterable[Layer], *, rounded: bool, also: int | None = None) -> bytes:
    """Return a serialized ONNX model that computes hidden states.

    Its inputs are ``embedded`` of shape (texts, tokens, 384) and ``mask`` of shape (texts, tokens). Its outputs are the
    states of the last layer and, if given, of the layer ``also``, counted from 1.

    ``rounded`` keeps the weights in eight bits, and quantizes states to eight bits before each product. The model then
    needs a third of the time and a quarter of the memory, and its vectors change by a few thousandths.
    """
    nodes: list[bytes] = []
    tensors: list[bytes] = []
    state = "embedded"
    for number, layer in enumerate(layers):
        own, after = f"l{number}.", f"x{number + 1}"
        nodes += (_node(*each) for each in _layer(own, state, after, rounded=rounded))
        tensors += _tensors_of(own, layer, rounded=rounded)
        state = after
    shape = ["texts", "tokens"]
    graph = [(1, node) for node in nodes] + [(2, b"bert")] + [(5, tensor) for tensor in tensors]
    graph += [(11, _value("embedded", 1, [*shape, WIDTH])), (11, _value("mask", 6, shape))]
    outputs = [state] if also is None else [state, f"x{also}"]
    graph += [(12, _value(name, 1, [*shape, WIDTH])) for name in outputs]
    opsets = [(8, _message([(1, b""), (2, _OPSET)])), (8, _message([(1, MICROSOFT), (2, 1)]))]
    return _message([(1, _IR_VERSION), *opsets, (7, _message(graph))])


_Node = tuple[str, list[str], str, dict[str, Any]]


def _layer(own: str, state: str, after: str, *, rounded: bool) -> Iterator[_Node]:
    """Yield the nodes of a layer, attention and feed-forward, whose names have the prefix ``own``."""

    def product(name: str, of: str) -> _Node:
        if rounded:
            return "DynamicQuantizeMatMul", [of, f"{own}{name}.w", f"{own}{name}.s"], own + name, {}
        return "MatMul", [of, f"{own}{name}.w"], own + name, {}

    for name in "qkv":
        yield product(name, state)
    mixed = [own + "q", own + "k", own + "v", own + "qkv.b", "mask"]
    yield "MultiHeadAttention", mixed, own + "mixed", {"num_heads": HEADS}
    yield product("ao", own + "mixed")
    yield _evened(own, "ao", state, "aln", own + "attended")
    yield product("fi", own + "attended")
    yield "BiasGelu", [own + "fi", own + "fi.b"], own + "inner", {}
    yield product("fo", own + "inner")
    yield _evened(own, "fo", own + "attended", "oln", after)


def _evened(own: str, name: str, state: str, by: str, out: str) -> _Node:
    inputs = [own + name, state, f"{own}{by}.w", f"{own}{by}.b", f"{own}{name}.b"]
    return "SkipLayerNormalization", inputs, out, {"epsilon": EPSILON}


def _tensors_of(own: str, layer: Layer, *, rounded: bool) -> Iterator[bytes]:
    for name, (numbers, steps) in layer.matrices.items():
        if rounded:
            yield _tensor(f"{own}{name}.s", steps)
        yield _tensor(f"{own}{name}.w", numbers if rounded else numbers * steps)
    for name, vector in layer.vectors.items():
        yield _tensor(own + name, vector)


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


def _node(operator: str, inputs: list[str], out: str, attributes: dict[str, Any]) -> bytes:
    fields: list[tuple[int, Any]] = [*((1, name) for name in inputs), (2, out), (4, operator)]
    for name, value in attributes.items():
        number, kind = (2, 1) if isinstance(value, float) else (3, 2)
        fields.append((5, _message([(1, name), (number, value), (20, kind)])))
    return _message([*fields, (7, "" if operator == "MatMul" else MICROSOFT)])


def _tensor(name: str, numbers: NDArray[Any]) -> bytes:
    shape = [(1, length) for length in numbers.shape]
    return _message([*shape, (2, _TYPES[numbers.dtype.name]), (8, name), (9, numbers.tobytes())])


def _value(name: str, kind: int, shape: list[Any]) -> bytes:
    lengths = [(1, _message([(1 if isinstance(length, int) else 2, length)])) for length in shape]
    return _message([(1, name), (2, _message([(1, _message([(1, kind), (2, _message(lengths))]))]))])
