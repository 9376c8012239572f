"""Embedders behind any server that speaks the OpenAI API."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.clients import Clients, Endpoint, calls, timeout_of
from memoryhub.llm.errors import ModelTimeout
from memoryhub.llm.metering import report_embedding
from memoryhub.llm.openai_errors import VENDOR_ERRORS, delay_before_retry, embedder_error, model_error
from memoryhub.llm.openai_replies import vectors_in_order
from memoryhub.llm.usage import Usage, estimated_tokens, usage_said

EMBEDDING_BATCH = 64
# Of a whole call, retries included: a server may send its vectors byte by byte.
EMBEDDING_TIMEOUT_SECONDS = 10.0
EMBEDDING_TIMEOUT_PER_TEXT_SECONDS = 0.5


class OpenAIEmbedder:
    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._clients = Clients()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. The dimension is the one the server returns."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        rows: list[list[float]] = []
        for start in range(0, len(texts), EMBEDDING_BATCH):
            rows += self._embed_batch(list(texts[start : start + EMBEDDING_BATCH]))
        return normalised(rows, count=len(texts))

    def _embed_batch(self, batch: list[str], **more: str) -> list[list[float]]:
        """``more``: what this server takes beyond OpenAI's own fields."""
        attempt = 0
        limit = EMBEDDING_TIMEOUT_SECONDS + EMBEDDING_TIMEOUT_PER_TEXT_SECONDS * len(batch)
        ends = time.monotonic() + limit
        while True:
            left = ends - time.monotonic()
            try:
                reply = calls.within(left, self._ask(batch, left, more))
                guess = Usage(sum(map(estimated_tokens, batch)), calls=1, estimated=1)
                report_embedding(self.name, usage_said(getattr(reply, "usage", None)) or guess)
                return vectors_in_order(reply, len(batch))
            except TimeoutError as error:
                raise embedder_error(ModelTimeout(detail=f"{limit:g} s were not enough")) from error
            except VENDOR_ERRORS as error:
                failure = model_error(error)
                delay = delay_before_retry(failure, attempt, left=ends - time.monotonic())
                if delay is None:
                    raise embedder_error(failure) from error
            attempt += 1
            time.sleep(delay)

    async def _ask(self, batch: list[str], seconds: float, more: dict[str, str]) -> Any:
        return await self._clients.for_running_loop(self._endpoint).embeddings.create(
            model=self._endpoint.model,
            input=batch,
            encoding_format="float",  # every server has it; base64, the library's own choice, not
            timeout=timeout_of(seconds),
            extra_body=more,
        )


class BundledElsewhere(OpenAIEmbedder):
    """The bundled embedder as a part of its own (``memoryhub.llm.embedder_server``): as in this process, it embeds
    questions differently from stored texts.
    """

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """The first as asked, the others as its gists."""
        return normalised(self._embed_batch(list(texts), input_type="question"), count=len(texts))
