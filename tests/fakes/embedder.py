"""An embedder without a model: texts that share words are close."""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.errors import EmbedderError


@lru_cache(maxsize=50_000)
def _direction(word: str, dim: int) -> Vectors:
    """Return the word's random direction, the same in every process."""
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(dim, dtype=np.float32)


class FakeEmbedder:
    """Embeds a text as the sum of its words' directions; a text without words has a direction of its own."""

    def __init__(self, dim: int = 384, name: str | None = None) -> None:
        self.dim = dim
        self.name = name or f"fake-{dim}"
        self.error: EmbedderError | None = None
        """Raised by every call while it is set."""
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if self.error is not None:
            raise self.error
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return normalised([self._sum(text) for text in texts], count=len(texts))

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        return self.embed(texts)

    def _sum(self, text: str) -> Vectors:
        words = re.findall(r"\w+", text.lower()) or [f"no words: {text}"]
        total: Vectors = np.sum([_direction(word, self.dim) for word in words], axis=0, dtype=np.float32)
        return total
