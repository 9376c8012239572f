"""Texts of any language to vectors, and to the states of their pieces. Loaded on the first text, in about a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from memoryhub.llm import bert
from memoryhub.llm.base import Vectors
from memoryhub.llm.bert import WIDTH
from memoryhub.llm.e5.pieces import BEGIN, END, Pieces
from memoryhub.llm.e5.weights import WORDS, plain, read_weights
from memoryhub.llm.errors import EmbedderAltered, EmbedderError, EmbedderNotInstalled
from memoryhub.llm.onnx_sessions import in_batches, open_session
from memoryhub.llm.vectors import normalised
from memoryhub.model_files import ModelFileAltered, ModelFileMissing

MAX_PIECES = 512  # the model's own end; of longer text the beginning counts
Prefix = Literal["query: ", "passage: "]
"""What the model was trained to find before a question and before what answers it; for a likeness "query: "."""


@dataclass(frozen=True)
class States:
    """What the model makes of each piece of a text where it stands; the prefix and the marks are left out."""

    pieces: list[str]  # a word's first begins with ▁
    vectors: Vectors  # (pieces, 384), not of length 1


class MultilingualEncoder:
    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def load(self) -> None:
        """Now, not with the first text. Raises EmbedderError."""
        self._ready()

    def encode(self, texts: Sequence[str], prefix: Prefix = "query: ") -> Vectors:
        """One vector a text: float32 of shape (n, 384), of length 1. Raises EmbedderError."""
        pooled = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for at, _pieces, states in self._run(texts, prefix):
            pooled[at] = states.mean(axis=0)
        return normalised(pooled, count=len(texts)) if texts else pooled

    def states(self, texts: Sequence[str], prefix: Prefix = "query: ") -> list[States]:
        """The pieces of each text with their states. Raises EmbedderError."""
        found: list[States | None] = [None] * len(texts)
        skipped = len(self._ready().pieces.cut(prefix)[0])
        for at, pieces, states in self._run(texts, prefix):
            found[at] = States(pieces[skipped:], states[1 + skipped : 1 + len(pieces)])
        return [each for each in found if each is not None]

    def _run(self, texts: Sequence[str], prefix: str) -> Iterator[tuple[int, list[str], Vectors]]:
        """Of each text its place, its pieces and all its states; texts of similar length go together."""
        loaded = self._ready()
        try:
            cut = [loaded.pieces.cut(prefix + text) for text in texts]
            framed = [[BEGIN, *pieces[: MAX_PIECES - 2], END] for pieces, _words in cut]
            for batch in in_batches([len(own) for own in framed]):
                ids = [framed[at] for at in batch]
                for at, own, states in zip(batch, ids, loaded.encoder.run(ids), strict=True):
                    yield at, cut[at][1][: MAX_PIECES - 2], states[: len(own)]
        except EmbedderError:
            raise
        except Exception as error:  # onnxruntime has no base class of its own for what it raises
            raise EmbedderError(detail=str(error)) from error

    def _ready(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._threads)
            return self._loaded


class _Loaded(NamedTuple):
    pieces: Pieces
    encoder: bert.Encoder


def _load(threads: int) -> _Loaded:
    try:
        weights = read_weights()
    except ModelFileMissing as error:
        raise EmbedderNotInstalled(detail=str(error)) from error
    except ModelFileAltered as error:
        raise EmbedderAltered(detail=str(error)) from error
    words = weights.matrix("emb.word", WORDS)  # its blocks, in the file
    encoder = bert.Encoder(
        lambda ids: plain(words[ids]),
        weights.vector("emb.pos").reshape(-1, WIDTH) + weights.vector("emb.type")[:WIDTH],
        (weights.vector("emb.ln.w"), weights.vector("emb.ln.b")),
        open_session(bert.model_of(weights.layers(), rounded=True), threads),
    )
    return _Loaded(Pieces(*weights.pieces), encoder)
