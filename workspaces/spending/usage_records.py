"""Usage and cost of model calls, summed by day in the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import formats, timezone

from memoryhub.llm.metering import NOTHING, Meter, Metered, Parts, Price, Usage, cost_of, metered, names_of
from workspaces.model_choice import Chosen
from workspaces.models.language_models import Purpose

_USAGE = names_of(Usage)
_PARTS = tuple(name for name in names_of(Parts) if name != "whole")
ABOUT = "\N{ALMOST EQUAL TO}\N{NO-BREAK SPACE}"  # before an estimated number
NUMBERS = (*_USAGE, *_PARTS, "unpriced")  # as columns of ModelUse and in JSON


@dataclass(frozen=True, slots=True)
class Bill:
    """Usage and cost of model calls.

    ``memory``, ``documents``, ``tools``: estimated parts of the input tokens. ``unpriced``: the number of calls without
    a price, which ``cost`` does not include.
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
        parts: Parts = metered.parts.scaled_to(usage.tokens_in)
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
        """Return "≈" to show before estimated numbers, or an empty string if providers reported all usage."""
        return ABOUT if self.is_estimate else ""

    @property
    def has_cost(self) -> bool:
        """Return whether any call has a price, so that a cost can be shown."""
        return self.calls > self.unpriced

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "cost": str(self.cost)}

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Bill:
        """Return the bill that ``as_json`` converted, or an empty bill for None."""
        stored = stored or {}
        numbers = {name: int(stored.get(name, 0)) for name in NUMBERS}
        return cls(**numbers, cost=Decimal(stored.get("cost", 0)))


SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "INR": "₹", "BRL": "R$"}


def amount(money: Decimal) -> str:
    """Format money in the installation's currency: $12.30, or with two significant digits below 0.10: $0.0041.

    A currency that is not in ``SIGNS`` has its code: CHF 3.20.
    """
    is_plain = money == 0 or abs(money) >= Decimal("0.1")
    places = 2 if is_plain else min(8, 1 - money.adjusted())
    rounded = money.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    number = formats.number_format(rounded, decimal_pos=places, use_l10n=True, force_grouping=True)
    sign = SIGNS.get(settings.CURRENCY)
    return f"{sign}{number}" if sign else f"{settings.CURRENCY}\N{NO-BREAK SPACE}{number}"


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of a model.

    ``model``: its name in the usage records; empty for a person's own connection, whose model is private.
    ``is_embedded``: the model is built in, costs nothing and ignores budgets.
    """

    model: str
    price: Price | None = None
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """The workspace, person, purpose and price that the usage of model calls is recorded under."""

    workspace_id: int | None
    user_id: int | None
    purpose: Purpose
    rate: Rate

    def bill(self, total: Metered) -> Bill | None:
        """Return the bill of this usage, or None if it has no call."""
        return Bill.of(total, self.rate) if total.usage.calls else None


def rate_of(chosen: Chosen) -> Rate:
    """Return the price of the chosen model. If none is set, ``price`` is None and no cost is shown."""
    connection = chosen.connection
    if connection is not None:
        return Rate(connection.model if connection.is_shared else "", connection.price)
    if settings.EMBEDDED_MODEL:
        return Rate(chosen.model.name, NOTHING, is_embedded=True)
    return Rate(settings.LLM_MODEL, settings.LLM_PRICE)


_SUMS = [*NUMBERS, "cost"]
_VALUES = ", ".join(f"%({name})s" for name in _SUMS)
# If the person has been deleted, the row has no user, so that recording does not fail. The unique constraint
# treats rows without a user as different, because sums outlive their people; such a row is updated by its key.
_ADD = f"""
WITH whose AS (
  SELECT (SELECT id FROM workspaces_workspace WHERE id = %(workspace)s) AS workspace_id,
         (SELECT id FROM workspaces_user WHERE id = %(user)s) AS user_id
), nobodys AS (
  SELECT kept.id FROM workspaces_modeluse kept, whose
  WHERE (whose.workspace_id IS NULL OR whose.user_id IS NULL)
    AND kept.workspace_id IS NOT DISTINCT FROM whose.workspace_id
    AND kept.user_id IS NOT DISTINCT FROM whose.user_id
    AND (day, purpose, model, is_embedded) = (%(day)s, %(purpose)s, %(model)s, %(is_embedded)s)
  ORDER BY kept.id LIMIT 1
), added AS (
  UPDATE workspaces_modeluse mine SET {", ".join(f"{name} = mine.{name} + %({name})s" for name in _SUMS)}
  FROM nobodys WHERE mine.id = nobodys.id RETURNING 1
)
INSERT INTO workspaces_modeluse AS mine
  (workspace_id, user_id, day, purpose, model, is_embedded, {", ".join(_SUMS)})
SELECT workspace_id, user_id, %(day)s, %(purpose)s, %(model)s, %(is_embedded)s, {_VALUES} FROM whose
WHERE NOT EXISTS (SELECT FROM added)
ON CONFLICT {{target}} DO UPDATE SET {", ".join(f"{name} = mine.{name} + excluded.{name}" for name in _SUMS)}
"""  # noqa: S608 - names of columns of ours
_OF_SOMEBODY = _ADD.format(target="(workspace_id, user_id, day, purpose, model, is_embedded)")
_OF_ALL = _ADD.format(target=f"(day, model) WHERE purpose = '{Purpose.INDEX}'")


def record(account: Account, meter: Meter, *, now: datetime) -> Bill | None:
    """Add the meter's usage to the daily sums and return it, or None without usage.

    One upsert, whose row stays locked until the commit. The meter is emptied on commit, so that usage is counted once
    if the transaction is rolled back and retried.
    """
    total = meter.total()
    bill = account.bill(total)
    if bill is not None:
        put(account, bill, now)
        transaction.on_commit(lambda: meter.forget(total))
    return bill


@contextmanager
def counted(account: Account) -> Iterator[None]:
    """Record the model usage of this block, even if it fails. Use it outside of transactions."""
    with metered() as meter:
        try:
            yield
        finally:
            if bill := account.bill(meter.total()):
                put(account, bill, timezone.now())


def put(account: Account, bill: Bill, now: datetime) -> None:
    """Add this bill to the daily sums of its workspace and person.

    The caller must empty the meter after the commit, so that the usage is counted once.
    """
    _write(_OF_SOMEBODY, account, bill, now)


def record_embedding(model: str, usage: Usage) -> None:
    """Record an embedder's usage for the whole installation, because one call may serve several workspaces."""
    rate = Rate(model[:200], settings.EMBEDDING_PRICE)
    bill = Bill.of(Metered(usage, Parts()), rate)
    _write(_OF_ALL, Account(None, None, Purpose.INDEX, rate), bill, timezone.now())


def _write(statement: str, account: Account, bill: Bill, now: datetime) -> None:
    values = {
        "workspace": account.workspace_id,
        "user": account.user_id,
        "day": now.astimezone(UTC).date(),
        "purpose": account.purpose,
        "model": account.rate.model[:200],
        "is_embedded": account.rate.is_embedded,
        **{name: getattr(bill, name) for name in _SUMS},
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
