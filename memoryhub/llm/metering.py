"""Token usage of model calls, and meters that sum the usage of the calls within a block of code.

The active meter is a context variable, so threads and tasks that copy the context use the same meter. Chat calls
without an active meter, such as a connection test, are not counted. Embedding calls may serve many users at once.
Unless the active meter takes them, they are reported to the listeners that ``on_embeddings`` registered.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span

from memoryhub.llm.base import estimated_tokens

MOST_PRICE = Decimal(1_000_000)
SMALLEST = Decimal("0.00000001")  # unit of the currency to which costs are rounded


@cache
def names_of(of: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of the dataclass ``of``, in order."""
    return tuple(each.name for each in fields(of))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, or the sum of several calls."""

    tokens_in: int = 0  # the whole prompt
    cached: int = 0  # its part that the provider read from its cache
    tokens_out: int = 0  # all generated text
    reasoning: int = 0  # its part that is reasoning
    calls: int = 0
    estimated: int = 0  # calls without reported usage, which was estimated from the texts

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, each) + getattr(other, each) for each in names_of(Usage)))

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Parts:
    """Estimated tokens of the parts of prompts: memories, documents and tools (descriptions and results)."""

    memory: int = 0
    documents: int = 0
    tools: int = 0
    whole: int = 0  # the complete prompt

    def __add__(self, other: Parts) -> Parts:
        return Parts(*(getattr(self, each) + getattr(other, each) for each in names_of(Parts)))

    def scaled_to(self, tokens_in: int) -> Parts:
        """Return these estimates, scaled so that the whole prompt has ``tokens_in`` tokens, as the provider counted."""
        if not self.whole:
            return Parts(whole=tokens_in)
        share = tokens_in / self.whole
        memory, documents, tools = (
            min(tokens_in, round(part * share)) for part in (self.memory, self.documents, self.tools)
        )
        return Parts(memory, documents, tools, tokens_in)


@dataclass(frozen=True, slots=True)
class Price:
    """Price per million tokens in ``settings.CURRENCY``. Cached tokens cost as much as others if they have no price."""

    tokens_in: Decimal
    tokens_out: Decimal
    cached: Decimal | None = None


NOTHING = Price(Decimal(0), Decimal(0))


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return the cost in the installation's currency, to eight places, or None if the price is unknown."""
    if price is None:
        return None
    cached = min(usage.cached, usage.tokens_in)
    cached_price = price.tokens_in if price.cached is None else price.cached
    whole = (usage.tokens_in - cached) * price.tokens_in + cached * cached_price
    whole += usage.tokens_out * price.tokens_out
    return (whole / Decimal(1_000_000)).quantize(SMALLEST, ROUND_HALF_EVEN)


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metered:
    """The total usage of a meter."""

    usage: Usage
    parts: Parts
    entries: int = 0  # how many ``Meter.forget`` removes


class Meter:
    """Usage of the calls made so far. With ``takes_embeddings`` it includes embedding calls."""

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
        """Remove the entries of a total that has been saved, so that they are not counted again."""
        with self._lock:
            del self._entries[: written.entries]


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)
_embeddings: list[Callable[[str, Usage], None]] = []


@contextmanager
def metered(meter: Meter | None = None) -> Iterator[Meter]:
    """Meter the model calls made in this block, with ``meter`` or a new meter."""
    mine = meter or Meter()
    token = _meter.set(mine)
    try:
        yield mine
    finally:
        _meter.reset(token)


def report(usage: Usage, call: Span = INVALID_SPAN) -> None:
    """Add the usage of one model call to the active meter and to the call's trace span."""
    call.set_attributes(
        {"gen_ai.usage.input_tokens": usage.tokens_in, "gen_ai.usage.output_tokens": usage.tokens_out}
    )
    if (meter := _meter.get()) is not None:
        meter.add(usage)


def report_parts(parts: Parts) -> None:
    """Add the parts of a call's prompt to the active meter."""
    if (meter := _meter.get()) is not None:
        meter.add(Usage(), parts)


def on_embeddings(listen: Callable[[str, Usage], None]) -> None:
    """Register a listener that receives the model's name and the usage of each embedding call over HTTP."""
    if listen not in _embeddings:
        _embeddings.append(listen)


def report_embedding(model: str, usage: Usage) -> None:
    """Add the usage of an embedding call to the active meter, or pass it to the listeners, whose errors are logged."""
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
    """Estimate the usage of a call from its messages and reply, for providers that report none."""
    sent = estimated_tokens(*(_text_of(message.get("content")) for message in messages))
    return Usage(sent, 0, estimated_tokens(written) if written else 0, calls=1, estimated=1)


def _text_of(content: Any) -> str:
    """Return the text of a message's content, without pictures."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
