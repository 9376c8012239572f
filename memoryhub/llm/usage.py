"""Usage of a model call, in tokens, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from typing import Any

# Of English, on the careful side; scripts of two and three bytes a letter cost more tokens.
BYTES_PER_TOKEN = 3.2
MOST_TOKENS = 10**9  # that a server is believed of one call
MOST_PRICE = Decimal(1_000_000)
MILLION = Decimal(1_000_000)
SMALLEST = Decimal("0.00000001")  # of the currency: to this a cost is rounded
FREE_OF_USE = Decimal(0)


@cache
def names_of(of: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass, in order."""
    return tuple(each.name for each in fields(of))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call of a model, or the sum of several.

    ``tokens_in`` is the whole prompt, ``cached`` the share of it that the provider took from its cache; ``tokens_out``
    is all that was written, ``reasoning`` the share of it that was thought. ``calls``, and how many of them are
    ``estimated``: nobody said what they took, so it was guessed from the length of the texts.
    """

    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    reasoning: int = 0
    calls: int = 0
    estimated: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, each) + getattr(other, each) for each in names_of(Usage)))

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of prompts, in estimated tokens: recalled memories, passages of documents, tools (their descriptions
    and results), and the ``whole`` with all else.
    """

    memory: int = 0
    documents: int = 0
    tools: int = 0
    whole: int = 0

    def __add__(self, other: Parts) -> Parts:
        return Parts(*(getattr(self, each) + getattr(other, each) for each in names_of(Parts)))

    def of(self, tokens_in: int) -> Parts:
        """The same shares of what the provider counted."""
        if not self.whole:
            return Parts(whole=tokens_in)
        share = tokens_in / self.whole
        memory, documents, tools = (
            min(tokens_in, round(part * share)) for part in (self.memory, self.documents, self.tools)
        )
        return Parts(memory, documents, tools, tokens_in)


@dataclass(frozen=True, slots=True)
class Price:
    """Price per million tokens, in the installation's currency (``settings.CURRENCY``). Without a price of their own
    cached tokens cost what others do.
    """

    tokens_in: Decimal
    tokens_out: Decimal
    cached: Decimal | None = None


NOTHING = Price(FREE_OF_USE, FREE_OF_USE)


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return the cost in the installation's currency, to eight places; None if no price is known, which is not 0.

    For everybody who counts: answers, jobs, `/v1`, runs. A connection's price is ``Connection.price``, the one of
    chosen model ``workspaces.spending.bill.rate_of(chosen).price``. Pure.
    """
    if price is None:
        return None
    cached = min(usage.cached, usage.tokens_in)
    cached_price = price.tokens_in if price.cached is None else price.cached
    whole = (usage.tokens_in - cached) * price.tokens_in + cached * cached_price
    whole += usage.tokens_out * price.tokens_out
    return (whole / MILLION).quantize(SMALLEST, ROUND_HALF_EVEN)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text; without a tokenizer, since every model has another."""
    return int(len(text.encode(errors="replace")) / BYTES_PER_TOKEN) + 4


def usage_said(said: Any) -> Usage | None:
    """A provider's own usage of one call, as JSON or as the library's object; None where it says none. What makes no
    sense (negative, a share above its whole) is brought into its bounds: servers write what they like.
    """
    read, written = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    if not read and not written:
        return None
    cached = _count(_part(said, "prompt_tokens_details"), "cached_tokens")
    cached = cached or _count(said, "prompt_cache_hit_tokens")  # DeepSeek
    thought = _count(_part(said, "completion_tokens_details"), "reasoning_tokens")
    return Usage(read, min(cached, read), written, min(thought, written), calls=1)


def _part(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _count(of: Any, name: str) -> int:
    value = _part(of, name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, min(value, MOST_TOKENS))
