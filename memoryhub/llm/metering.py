"""Counting what models take. Every call says it here, and whoever had it made listens.

A meter is put up for a block of code; threads and loops that are begun in it with its context count in it too. Calls
where none is up, such as the test of a connection, are counted by nobody; those of embedders, which work for many at
once, by the one that is registered for all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from memoryhub.llm.usage import Parts, Usage, estimated_tokens
from memoryhub.monitoring import tracing

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metered:
    """What was counted so far, together: of the first ``entries`` of a meter."""

    usage: Usage
    parts: Parts
    entries: int = 0


class Meter:
    """What the calls took that were made so far. ``takes_embeddings``: those of embedders as well."""

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
        """What is written down is not counted again."""
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


def call_of(model: str) -> tracing.Span:
    """One call of a model, for whoever traces: which and how long, and what it took once that is reported."""
    named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    return tracing.span("memoryhub.model", named, kind="CLIENT", alone=True)


def report(usage: Usage, call: tracing.Span = tracing.NOTHING) -> None:
    """What one call of a model took."""
    call.note({"gen_ai.usage.input_tokens": usage.tokens_in, "gen_ai.usage.output_tokens": usage.tokens_out})
    if (meter := _meter.get()) is not None:
        meter.add(usage)


def report_parts(parts: Parts) -> None:
    """What the prompt of a call was made of."""
    if (meter := _meter.get()) is not None:
        meter.add(Usage(), parts)


def on_embeddings(listen: Callable[[str, Usage], None]) -> None:
    """Have ``listen`` told the model's name and what it took, of each call of an embedder that is asked over HTTP."""
    if listen not in _embeddings:
        _embeddings.append(listen)


def report_embedding(model: str, usage: Usage) -> None:
    """What one call of an embedder took. Trouble with counting costs nobody their vectors."""
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
    """Of a call whose provider does not say what it took: from the length of what was sent and of what came."""
    sent = sum(estimated_tokens(_text_of(message.get("content"))) for message in messages)
    return Usage(sent, 0, estimated_tokens(written) if written else 0, calls=1, estimated=1)


def _text_of(content: Any) -> str:
    """The words of a message; pictures in it are not counted."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
