"""BERT encoders that run in onnxruntime, with a graph that ``memoryhub.llm.onnx_graph`` builds from the weights.

The word table stays in its memory-mapped file, since a text needs few rows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderAltered, EmbedderNotInstalled
from memoryhub.model_files import ModelFileAltered, ModelFileMissing

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

WIDTH, HEADS, INNER = 384, 12, 1536
EPSILON = 1e-12
MATRICES = ("q", "k", "v", "ao", "fi", "fo")
VECTORS = ("ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b")


@dataclass(frozen=True)
class Layer:
    # By MATRICES: weights (in, out), and the scale of each column
    matrices: dict[str, tuple[NDArray[np.int8], Vectors]]
    vectors: dict[str, Vectors]  # by VECTORS, and "qkv.b": three concatenated biases


@dataclass(frozen=True)
class Encoder:
    words: Callable[[NDArray[np.int64]], Vectors]  # returns word embeddings of token ids
    places: Vectors  # position embeddings, by position
    evening: tuple[Vectors, Vectors]  # weight and bias of the layer norm
    session: InferenceSession  # of a model that ``onnx_graph.model_of`` built

    def run(self, ids: Sequence[Sequence[int]]) -> list[Vectors]:
        """Return each text's hidden states from each output of the model, padded to the longest text."""
        width = max(map(len, ids))
        padded = np.array([[*own, *[own[-1]] * (width - len(own))] for own in ids])
        mask = np.array([[1] * len(own) + [0] * (width - len(own)) for own in ids], dtype=np.int32)
        outputs: list[Vectors] = self.session.run(None, {"embedded": self._embedded(padded), "mask": mask})
        return outputs

    def _embedded(self, ids: NDArray[np.int64]) -> Vectors:
        vectors = self.words(ids) + self.places[: ids.shape[1]]
        vectors -= vectors.mean(axis=-1, keepdims=True)
        vectors /= np.sqrt((vectors**2).mean(axis=-1, keepdims=True) + EPSILON)
        evened: Vectors = vectors * self.evening[0] + self.evening[1]
        return evened


# Limits of a batch. Single short texts use a core badly, as do more than two long texts (figures in docs/figures.md).
# They also limit the memory that onnxruntime keeps.
MOST_TEXTS = 8
MOST_PIECES = 256  # tokens of a batch, padding included


def in_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return batches of texts of similar length, since padding costs as much as text, as indexes into ``lengths``."""
    batches: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        last = batches[-1] if batches else []
        if last and len(last) < MOST_TEXTS and lengths[at] * (len(last) + 1) <= MOST_PIECES:
            last.append(at)
        else:
            batches.append([at])
    return batches


@contextmanager
def file_errors() -> Iterator[None]:
    """Convert errors of a bundled model's files to EmbedderNotInstalled and EmbedderAltered."""
    try:
        yield
    except ModelFileMissing as error:
        raise EmbedderNotInstalled(detail=str(error)) from error
    except ModelFileAltered as error:
        raise EmbedderAltered(detail=str(error)) from error


def open_session(model: bytes) -> InferenceSession:
    """Open an inference session. Raises EmbedderNotInstalled if the model cannot be loaded, also for lack of memory."""
    import onnxruntime  # slow to import, and most processes never embed

    options = onnxruntime.SessionOptions()
    # One thread is best: two take a quarter more CPU time per sentence.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Idle threads must not spin on cores that the chat model and the database need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # for example too little memory; the library raises plain exceptions
        raise EmbedderNotInstalled(detail=str(error)) from error
