"""A pause for an embedder that failed: turns and saves go on by words without waiting for it.

Without that every recall and every save would wait for an endpoint that hangs until its time is out, or for the
retries at one that fails at once. Background jobs ask it all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memoryhub.llm.errors import EmbedderError, EmbedderUnavailable

SLOW = 2.0  # seconds of a failed call after which it rests for the whole time at once
FIRST_REST = 2.0  # seconds after a failure that came quickly, doubled with every further one in a row
REST = 20.0


@dataclass(frozen=True)
class _Resting:
    until: float
    seconds: float
    failure: type[EmbedderError]


_resting: dict[str, _Resting] = {}  # of this process, by the model's label


@contextmanager
def cooldown(label: str) -> Iterator[None]:
    """Around a call of this model that a person waits for. Raises its last kind of failure while it rests."""
    before, began = _resting.get(label), time.monotonic()
    if before and began < before.until:
        raise before.failure(detail=f"{label} failed a moment ago")
    try:
        yield
    except EmbedderError as error:
        now = time.monotonic()
        cause = (
            error.__cause__ if isinstance(error.__cause__, EmbedderError) else error
        )  # of an earlier model's
        is_slow = cause.retryable and now - began >= SLOW
        if is_slow or isinstance(cause, EmbedderUnavailable):
            seconds = REST if is_slow else min(REST, before.seconds * 2 if before else FIRST_REST)
            _resting[label] = _Resting(now + seconds, seconds, type(error))
        raise
    _resting.pop(label, None)
