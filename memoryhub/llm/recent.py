"""The last texts' vectors are kept: a query is often embedded again a moment later."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from memoryhub.llm.base import Vectors

CACHED_TEXTS = 256


class RecentTexts:
    """Remembers what ``infer`` gave last; who wants what another is embedding waits for that."""

    def __init__(self, infer: Callable[[Sequence[str]], Vectors], dimension: int) -> None:
        self._infer = infer
        self._dimension = dimension
        self._lock = threading.Lock()
        self._inferring = threading.Lock()
        self._recent: OrderedDict[str, Vectors] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in their order. Raises what ``infer`` raises."""
        known = self._known(texts)
        if len(known) < len(set(texts)):
            with self._inferring:
                known |= self._known(texts)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    vectors = self._infer(missing)
                    known |= dict(zip(missing, vectors, strict=True))
                    self._keep(missing, vectors)
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def clear(self) -> None:
        with self._lock:
            self._recent.clear()

    def __len__(self) -> int:
        return len(self._recent)

    def _known(self, texts: Sequence[str]) -> dict[str, Vectors]:
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
            for text in known:
                self._recent.move_to_end(text)
        return known

    def _keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        with self._lock:
            for text, vector in zip(texts[-CACHED_TEXTS:], vectors[-CACHED_TEXTS:], strict=True):
                self._recent[text] = vector.copy()  # a view would keep its whole batch in memory
            while len(self._recent) > CACHED_TEXTS:
                self._recent.popitem(last=False)
