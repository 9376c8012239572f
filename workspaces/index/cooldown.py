"""An embedder that kept somebody waiting in vain rests: meanwhile turns and saves go on by words, at once.

Without that every recall and every save would wait for an endpoint that hangs until its time is out. Background jobs
ask it all the same, and are the ones who find it well again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from memoryhub.llm.errors import EmbedderError

SLOW = 2.0  # seconds in vain after which it rests; what fails at once costs nobody anything
REST = 20.0  # seconds

_until: dict[str, tuple[float, type[EmbedderError]]] = {}  # of this process, by the model's label


@contextmanager
def cooldown(label: str) -> Iterator[None]:
    """Around a call of this model that a person waits for. Raises its last kind of failure while it rests."""
    until, failure = _until.get(label, (0.0, EmbedderError))
    began = time.monotonic()
    if began < until:
        raise failure(detail=f"{label} did not answer in time a moment ago")
    try:
        yield
    except EmbedderError as error:
        if error.retryable and time.monotonic() - began >= SLOW:
            _until[label] = time.monotonic() + REST, type(error)
        raise
    _until.pop(label, None)
