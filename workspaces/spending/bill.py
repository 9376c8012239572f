"""Sum of the usage and cost of some model calls: of an answer, a chat, a month. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.conf import settings
from django.utils import formats

from memoryhub.llm.metering import Metered
from memoryhub.llm.usage import NOTHING, Parts, Price, Usage, cost_of, names_of
from workspaces.connections.choice import Chosen
from workspaces.models.connections import Purpose

_USAGE = names_of(Usage)
_PARTS = tuple(name for name in names_of(Parts) if name != "whole")
ABOUT = "\N{ALMOST EQUAL TO}\N{NO-BREAK SPACE}"  # before a number that nobody counted
NUMBERS = (*_USAGE, *_PARTS, "unpriced")  # as columns of ModelUse and in JSON


@dataclass(frozen=True, slots=True)
class Bill:
    """``memory``, ``documents``, ``tools``: of the tokens in, estimated. ``unpriced``: calls that have no price, so
    that ``cost`` is without them.
    """

    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    reasoning: int = 0
    calls: int = 0
    estimated: int = 0
    memory: int = 0
    documents: int = 0
    tools: int = 0
    unpriced: int = 0
    cost: Decimal = Decimal(0)

    @classmethod
    def of(cls, metered: Metered, rate: Rate) -> Bill:
        usage: Usage = metered.usage
        parts: Parts = metered.parts.of(usage.tokens_in)
        cost = cost_of(usage, rate.price)
        return cls(
            **{name: getattr(usage, name) for name in _USAGE},
            **{name: getattr(parts, name) for name in _PARTS},
            unpriced=usage.calls if cost is None else 0,
            cost=cost or Decimal(0),
        )

    def __add__(self, other: Bill) -> Bill:
        numbers = {name: getattr(self, name) + getattr(other, name) for name in NUMBERS}
        return Bill(**numbers, cost=self.cost + other.cost)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def is_estimate(self) -> bool:
        return self.estimated > 0

    @property
    def about(self) -> str:
        """Return the mark before each number: none if providers reported them all."""
        return ABOUT if self.is_estimate else ""

    @property
    def has_cost(self) -> bool:
        """Whether money can be mentioned: a price of something is known."""
        return self.calls > self.unpriced

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "cost": str(self.cost)}

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Bill:
        """Make a bill from the result of ``as_json``, or from nothing."""
        stored = stored or {}
        numbers = {name: int(stored.get(name, 0)) for name in NUMBERS}
        return cls(**numbers, cost=Decimal(stored.get("cost", 0)))


# Amounts as people read them.

SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "INR": "₹", "BRL": "R$"}


def amount(money: Decimal) -> str:
    """$12.30; of less than a few cents two figures that count: $0.0041. Other currencies by their letters: CHF 3.20."""
    is_plain = money == 0 or abs(money) >= Decimal("0.1")
    places = 2 if is_plain else min(8, 1 - money.adjusted())
    rounded = money.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    number = formats.number_format(rounded, decimal_pos=places, use_l10n=True, force_grouping=True)
    sign = SIGNS.get(settings.CURRENCY)
    return f"{sign}{number}" if sign else f"{settings.CURRENCY}\N{NO-BREAK SPACE}{number}"


# Rates at which the calls of a model are counted.


@dataclass(frozen=True, slots=True)
class Rate:
    """``model``: its name in the ledger; of a person's own connection empty, as it is nobody else's business.
    ``is_embedded``: it runs in this installation, costs nothing, and continues at any budget.
    """

    model: str
    price: Price | None = None
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """On whom calls are put, what for, and at which rate."""

    workspace_id: int | None
    user_id: int | None
    purpose: Purpose
    rate: Rate


def rate_of(chosen: Chosen) -> Rate:
    """Return the rate of the model that answers. A price that nobody has set is None: then no money is mentioned."""
    connection = chosen.connection
    if connection is not None:
        return Rate(connection.model if connection.is_shared else "", connection.price)
    if settings.EMBEDDED_MODEL:
        return Rate(chosen.model.name, NOTHING, is_embedded=True)
    return Rate(settings.LLM_MODEL, settings.LLM_PRICE)
