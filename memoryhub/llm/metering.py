"""Metering of model calls. Each call reports its usage here to the active meters.

A meter is put up for a block of code; threads and loops that are begun in it with its context count in it too. Calls
where none is up, such as the test of a connection, are counted by nobody; those of embedders, which work for many at
once, by the one that is registered for all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from memoryhub.llm.usage import Parts, Usage, estimated_tokens
from memoryhub.monitoring import tracing

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metered:
    """Sum of the first ``entries`` of a meter."""

    usage: Usage
    parts: Parts
    entries: int = 0


class Meter:
    """Usage of the calls made so far. ``takes_embeddings``: those of embedders as well."""

    def __init__(self, *, takes_embeddings: bool = False) -> None:
        self.takes_embeddings = takes_embeddings
        self._lock = threading.Lock()
        self._entries: list[tuple[Usage, Parts]] = []

    def add(self, usage: Usage, parts: Parts | None = None) -> None:
        with self._lock:
            self._entries.append((usage, parts or Parts()))

    def total(self) -> Metered:
        with self._lock:
            entries = list(self._entries)
        usage = sum((usage for usage, _ in entries), Usage())
        return Metered(usage, sum((parts for _, parts in entries), Parts()), len(entries))

    def forget(self, written: Metered) -> None:
        """Drop what is written down, so that it is not counted again."""
        with self._lock:
            del self._entries[: written.entries]


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)
_embeddings: list[Callable[[str, Usage], None]] = []


@contextmanager
def metered(meter: Meter | None = None) -> Iterator[Meter]:
    """Count what is called in this block."""
    mine = meter or Meter()
    token = _meter.set(mine)
    try:
        yield mine
    finally:
        _meter.reset(token)


def call_of(model: str) -> AbstractContextManager[Span]:
    """Start the trace span of one model call: its name and duration, and its usage once that is reported."""
    named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    return tracing.span("memoryhub.model", named, kind=SpanKind.CLIENT, alone=True)


def report(usage: Usage, call: Span = INVALID_SPAN) -> None:
    """Report the usage of one call of a model."""
    call.set_attributes(
        {"gen_ai.usage.input_tokens": usage.tokens_in, "gen_ai.usage.output_tokens": usage.tokens_out}
    )
    if (meter := _meter.get()) is not None:
        meter.add(usage)


def report_parts(parts: Parts) -> None:
    """Report the parts of a call's prompt."""
    if (meter := _meter.get()) is not None:
        meter.add(Usage(), parts)


def on_embeddings(listen: Callable[[str, Usage], None]) -> None:
    """Call ``listen`` with the model's name and usage for each call of an embedder over HTTP."""
    if listen not in _embeddings:
        _embeddings.append(listen)


def report_embedding(model: str, usage: Usage) -> None:
    """Report the usage of one call of an embedder. An error while counting does not lose the vectors."""
    meter = _meter.get()
    if meter is not None and meter.takes_embeddings:
        meter.add(usage)
        return
    for listen in _embeddings:
        try:
            listen(model, usage)
        except Exception:
            logger.exception("What an embedder took could not be counted")


def guessed(messages: Sequence[Mapping[str, Any]], written: str) -> Usage:
    """Estimate a call whose provider does not report usage, from the length of the request and the reply."""
    sent = sum(estimated_tokens(_text_of(message.get("content"))) for message in messages)
    return Usage(sent, 0, estimated_tokens(written) if written else 0, calls=1, estimated=1)


def _text_of(content: Any) -> str:
    """The words of a message; pictures in it are not counted."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
