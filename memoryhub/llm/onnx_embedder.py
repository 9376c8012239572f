"""The embedder that needs no server: all-MiniLM-L6-v2, int8, inside this process.

About 5 ms for a short text and 300 ms to load, which happens on the first text and never at import.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderAltered, EmbedderError, EmbedderNotInstalled
from memoryhub.llm.onnx_sessions import open_session
from memoryhub.llm.recent import RecentTexts
from memoryhub.llm.vectors import normalised
from memoryhub.model_files import EMBEDDER, TOKENIZER, ModelFileAltered, ModelFileMissing

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

DIMENSION = 384
MAX_TOKENS = 256  # what the model was trained with; longer text is represented by its beginning
BATCH_SIZE = 8  # no slower than 32, and what a batch takes of memory the runtime keeps


class OnnxEmbedder:
    name = "all-MiniLM-L6-v2-int8"
    keeps_recent = True  # so that embedding a text ahead of its use pays

    def __init__(self, *, threads: int = 1) -> None:
        """A second thread takes a quarter more of the cores for a sentence, and other requests need those."""
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[InferenceSession, Tokenizer] | None = None
        self._recent = RecentTexts(self._infer, DIMENSION)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        return self._recent.embed(texts)

    def _load(self) -> tuple[InferenceSession, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_model(self._threads)
            return self._loaded

    def _infer(self, texts: Sequence[str]) -> Vectors:
        session, tokenizer = self._load()
        try:
            encodings = tokenizer.encode_batch(list(texts))
            # Texts of similar length together: padding costs as much as text.
            order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids))
            pooled = np.empty((len(texts), DIMENSION), dtype=np.float32)
            for start in range(0, len(order), BATCH_SIZE):
                batch = order[start : start + BATCH_SIZE]
                pooled[batch] = _run(session, [encodings[i].ids for i in batch])
        except Exception as error:  # onnxruntime and tokenizers have no common base class of their own
            raise EmbedderError(detail=str(error)) from error
        return normalised(pooled, count=len(texts))


def _run(session: InferenceSession, token_ids: Sequence[Sequence[int]]) -> Vectors:
    """Mean of the token vectors of each text, padding left out."""
    width = max(len(ids) for ids in token_ids)
    inputs = np.zeros((len(token_ids), width), dtype=np.int64)
    mask = np.zeros_like(inputs)
    for row, ids in enumerate(token_ids):
        inputs[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    feed = {"input_ids": inputs, "attention_mask": mask, "token_type_ids": np.zeros_like(inputs)}
    (states,) = session.run(None, feed)
    weights = mask[:, :, None].astype(np.float32)
    pooled: Vectors = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return pooled


def _load_model(threads: int) -> tuple[InferenceSession, Tokenizer]:
    from tokenizers import Tokenizer  # heavy; a process that never embeds must not pay for it

    try:
        model, vocabulary = EMBEDDER.content(), TOKENIZER.content()
    except ModelFileMissing as error:
        raise EmbedderNotInstalled(detail=str(error)) from error
    except ModelFileAltered as error:
        raise EmbedderAltered(detail=str(error)) from error
    session = open_session(model, threads)
    try:
        tokenizer = Tokenizer.from_buffer(vocabulary)
    except Exception as error:  # the library raises bare exceptions
        raise EmbedderNotInstalled(detail=str(error)) from error
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()  # the file pads everything to 128 tokens; batches here pad to their own longest
    return session, tokenizer
