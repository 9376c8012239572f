"""The embedder that needs no server: all-MiniLM-L6-v2, int8, inside this process.

About 5 ms for a short text and 300 ms to load, which happens on the first text and never at import.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memoryhub.llm import bert
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderAltered, EmbedderError, EmbedderNotInstalled
from memoryhub.llm.minilm import MiniLM
from memoryhub.llm.onnx_sessions import in_batches, open_session
from memoryhub.llm.recent import RecentTexts
from memoryhub.llm.vectors import normalised
from memoryhub.model_files import EMBEDDER, TOKENIZER, ModelFileAltered, ModelFileMissing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIMENSION = 384
MAX_TOKENS = 256  # what the model was trained with; longer text is represented by its beginning


class OnnxEmbedder:
    name = "all-MiniLM-L6-v2-int8"
    keeps_recent = True  # so that embedding a text ahead of its use pays

    def __init__(self, *, threads: int = 1) -> None:
        """A second thread takes a quarter more of the cores for a sentence, and other requests need those."""
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[bert.Encoder, Tokenizer] | None = None
        self._recent = RecentTexts(self._infer, DIMENSION)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        return self._recent.embed(texts)

    def _load(self) -> tuple[bert.Encoder, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_model(self._threads)
            return self._loaded

    def _infer(self, texts: Sequence[str]) -> Vectors:
        encoder, tokenizer = self._load()
        try:
            encodings = tokenizer.encode_batch(list(texts))
            pooled = np.empty((len(texts), DIMENSION), dtype=np.float32)
            for batch in in_batches([len(encoding.ids) for encoding in encodings]):
                pooled[batch] = _run(encoder, [encodings[i].ids for i in batch])
        except Exception as error:  # onnxruntime and tokenizers have no common base class of their own
            raise EmbedderError(detail=str(error)) from error
        return normalised(pooled, count=len(texts))


def _run(encoder: bert.Encoder, ids: Sequence[Sequence[int]]) -> Vectors:
    """Mean of the token vectors of each text, padding left out."""
    pairs = zip(encoder.run(ids), ids, strict=True)
    return np.stack([states[: len(own)].mean(axis=0) for states, own in pairs])


def _load_model(threads: int) -> tuple[bert.Encoder, Tokenizer]:
    from tokenizers import Tokenizer  # heavy; a process that never embeds must not pay for it

    try:
        model, vocabulary = MiniLM(EMBEDDER.checked_path()), TOKENIZER.content()
    except ModelFileMissing as error:
        raise EmbedderNotInstalled(detail=str(error)) from error
    except ModelFileAltered as error:
        raise EmbedderAltered(detail=str(error)) from error
    session = open_session(bert.model_of(model.layers(), rounded=False), threads)
    try:
        tokenizer = Tokenizer.from_buffer(vocabulary)
    except Exception as error:  # the library raises bare exceptions
        raise EmbedderNotInstalled(detail=str(error)) from error
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()  # the file pads everything to 128 tokens; batches here pad to their own longest
    return bert.Encoder(model.words, model.places(), model.evening(), session), tokenizer
