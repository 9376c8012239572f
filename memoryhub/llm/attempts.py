"""A call of a model, made again where that is of use."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from memoryhub.llm.clients import Endpoint
from memoryhub.llm.errors import ModelError
from memoryhub.llm.metering import call_of
from memoryhub.llm.openai_errors import VENDOR_ERRORS, delay_before_retry
from memoryhub.monitoring.tracing import Span

T = TypeVar("T")


class Patience:
    """The seconds of silence that the attempts of one call have together."""

    def __init__(self, limit: float) -> None:
        self._limit, self._heard_at = limit, time.monotonic()

    def hear(self) -> None:
        """Something came: the silence begins again."""
        self._heard_at = time.monotonic()

    @property
    def left(self) -> float:
        return self._limit - (time.monotonic() - self._heard_at)


def tried(
    endpoint: Callable[[], Endpoint],
    ask: Callable[[Endpoint, Span, float], T],
    learns: Callable[[Exception], bool],
    failure_of: Callable[[Exception, Endpoint], ModelError],
    *,
    limit: float,
) -> T:
    """What ``ask`` gives: at once again where the error ``learns`` how else to ask, later where it may pass. Blocks.

    ``limit``: seconds of silence of all attempts together. Each is given those that are left.
    """
    attempt, patience = 0, Patience(limit)
    while True:
        at = endpoint()
        with call_of(at.model) as call:
            try:
                return ask(at, call, patience.left)
            except VENDOR_ERRORS as error:
                if learns(error):
                    continue
                failure = failure_of(error, at)
                delay = delay_before_retry(failure, attempt, left=patience.left)
                if delay is None:
                    raise failure from error
                call.note({"error.type": type(failure).__name__}, failed=True)
        attempt += 1
        time.sleep(delay)
