"""Usage and cost of model calls, and monthly budgets.

Usage is summed by day in the database. A budget of a workspace or a person warns from four fifths on, and stops models
at the limit. Months are in UTC. The built-in model costs nothing and is not limited. Usage of a person's own connection
counts only against that person, because their own server reports it. Budgets are checked before a turn, and in runs
before each call. A started turn is completed, so concurrent turns can exceed a budget by their own usage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from memoryhub.database.queries import current_connection
from memoryhub.errors import DomainError, Forbidden, Invalid
from memoryhub.languages import grouped
from memoryhub.llm.metering import NOTHING, Meter, Metered, Parts, Price, Usage, cost_of, metered, names_of
from workspaces.access import require
from workspaces.audit import Verb, Word
from workspaces.audit import record as audit
from workspaces.connections import Chosen
from workspaces.models import Role, User, Workspace
from workspaces.models.connections import Budget, Purpose

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


# Amounts as people read them.

SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "INR": "₹", "BRL": "R$"}


def amount(money: Decimal) -> str:
    """Format money as $12.30, or with two significant digits if small: $0.0041.

    Other currencies have their code: CHF 3.20.
    """
    is_plain = money == 0 or abs(money) >= Decimal("0.1")
    places = 2 if is_plain else min(8, 1 - money.adjusted())
    rounded = money.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    number = formats.number_format(rounded, decimal_pos=places, use_l10n=True, force_grouping=True)
    sign = SIGNS.get(settings.CURRENCY)
    return f"{sign}{number}" if sign else f"{settings.CURRENCY}\N{NO-BREAK SPACE}{number}"


# Prices by which calls of a model are counted.


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
    """The workspace, person, purpose and price that calls are recorded under."""

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
    """Add this bill to the daily sums. The caller must empty the meter after the commit."""
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


NEAR = Decimal("0.8")
MOST_TOKENS = 10**15
MOST_MONEY = Decimal(1_000_000_000)
# People's own connections have no name in the usage records.
_STANDING = """
SELECT b.workspace_id IS NOT NULL, b.tokens, b.money, coalesce(sum(taken.tokens), 0), coalesce(sum(taken.cost), 0),
       coalesce(bool_or(taken.estimated > 0), false)
FROM workspaces_budget b LEFT JOIN LATERAL (
  SELECT tokens_in + tokens_out AS tokens, cost, estimated FROM workspaces_modeluse
  WHERE workspace_id = b.workspace_id AND day >= %(first)s AND day < %(next)s AND NOT is_embedded AND model <> ''
  UNION ALL
  SELECT tokens_in + tokens_out, cost, estimated FROM workspaces_modeluse
  WHERE user_id = b.user_id AND day >= %(first)s AND day < %(next)s AND NOT is_embedded
) taken ON true
WHERE b.workspace_id = %(workspace)s OR b.user_id = %(user)s
GROUP BY b.id
"""


class BudgetReached(DomainError):
    """Raised when a budget is used up.

    Models with a price are then not called until the month ends or the budget is raised.
    """

    status, code = 429, "budget"

    @property
    def for_all(self) -> str:
        """Return the message without the budget's owner and size, which only some people may know."""
        return _("A budget for the month is used up.")


@dataclass(frozen=True)
class Standing:
    """A budget with this month's usage.

    ``of_workspace`` is False for a personal budget. ``is_estimate``: some of the usage is estimated.
    """

    of_workspace: bool
    tokens: int | None
    money: Decimal | None
    tokens_taken: int
    money_taken: Decimal
    is_estimate: bool
    renewed_on: date

    @property
    def share(self) -> Decimal:
        """Return the used share of the budget, by tokens or by money, whichever is larger."""
        return max(
            _share(Decimal(self.tokens_taken), self.tokens), _share(self.money_taken, self.money), Decimal(0)
        )

    @property
    def percent(self) -> int:
        return min(100, int(self.share * 100))

    @property
    def is_near(self) -> bool:
        return self.share >= NEAR

    @property
    def is_spent(self) -> bool:
        return self.share >= 1

    @property
    def taken(self) -> str:
        """Return the used tokens or money, whichever is the larger share, as text."""
        about = ABOUT if self.is_estimate else ""
        if self.money is not None and _share(self.money_taken, self.money) == self.share:
            said = {"taken": about + amount(self.money_taken), "most": amount(self.money)}
            return _("%(taken)s of %(most)s") % said
        said = {"taken": about + grouped(self.tokens_taken), "most": grouped(self.tokens or 0)}
        return _("%(taken)s of %(most)s tokens") % said

    @property
    def sentence(self) -> str:
        """Return a sentence about a budget that is nearly or fully used: the usage, when it renews, and who can raise
        it.
        """
        said = {"taken": self.taken, "day": formats.date_format(self.renewed_on, "DATE_FORMAT")}
        if self.is_spent and self.of_workspace:
            return (
                _(
                    "This workspace's budget for the month is used up: %(taken)s. No model that costs something "
                    "answers here until %(day)s. An owner can raise the budget in the settings, under Usage."
                )
                % said
            )
        if self.is_spent:
            return (
                _(
                    "Your budget for the month is used up: %(taken)s. No model that costs something answers you until "
                    "%(day)s. An administrator can raise it."
                )
                % said
            )
        if self.of_workspace:
            return (
                _("This workspace has used %(taken)s of its budget for this month, which renews on %(day)s.")
                % said
            )
        return _("You have used %(taken)s of your budget for this month, which renews on %(day)s.") % said


def _share(taken: Decimal, most: int | Decimal | None) -> Decimal:
    if most is None:
        return Decimal(-1)
    return taken / most if most else Decimal(1)


def first_of_month(now: datetime) -> date:
    return now.astimezone(UTC).date().replace(day=1)


def first_of_next(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)


def standings(workspace_id: int | None, user_id: int | None, *, now: datetime) -> list[Standing]:
    """Return the budgets of the workspace and of the person, the one with the largest used share first. One query."""
    first = first_of_month(now)
    renewed = first_of_next(first)
    values = {"workspace": workspace_id, "user": user_id, "first": first, "next": renewed}
    with current_connection().cursor() as cursor:
        cursor.execute(_STANDING, values)
        found = [
            Standing(row[0], row[1], row[2], int(row[3]), row[4], row[5], renewed)
            for row in cursor.fetchall()
        ]
    return sorted(found, key=lambda standing: standing.share, reverse=True)


def require_budget(
    workspace_id: int | None, user_id: int | None, rate: Callable[[], Rate], *, now: datetime
) -> None:
    """Raise BudgetReached if the workspace's or the person's budget is used up, unless the built-in model answers.

    One query. ``rate`` is called only if a budget is used up.
    """
    for standing in standings(workspace_id, user_id, now=now)[:1]:
        if standing.is_spent and not rate().is_embedded:
            raise BudgetReached(standing.sentence)


def has_budget(account: Account, *, now: datetime) -> bool:
    """Return whether the budgets allow a model call. If not, background jobs continue without a model."""
    try:
        require_budget(account.workspace_id, account.user_id, lambda: account.rate, now=now)
    except BudgetReached:
        return False
    return True


def set_workspace_budget(
    workspace: Workspace, *, tokens: int | None, money: Decimal | None, by: User, now: datetime
) -> Budget | None:
    """Set the workspace's monthly budget; with neither tokens nor money, remove it.

    Raises Forbidden if ``by`` is no owner.
    """
    require(workspace.role, Role.OWNER)
    _check(tokens, money)
    with transaction.atomic():
        audit(Verb.BUDGET_SET, by=by, workspace=workspace, details=_said(tokens, money))
        return _set(now, tokens, money, workspace_id=workspace.pk)


def set_person_budget(
    user: User, *, tokens: int | None, money: Decimal | None, by: User, now: datetime
) -> Budget | None:
    """Set a person's monthly budget for all workspaces. Raises Forbidden if ``by`` is no administrator."""
    if not (by.is_active and by.is_staff and by.is_superuser):
        raise Forbidden(_("Only administrators can set a person's budget."))
    _check(tokens, money)
    with transaction.atomic():
        audit(Verb.BUDGET_SET, by=by, target=user.public_id, details=_said(tokens, money))
        return _set(now, tokens, money, user_id=user.pk)


def _check(tokens: int | None, money: Decimal | None) -> None:
    wrong = {}
    if tokens is not None and not 0 <= tokens <= MOST_TOKENS:
        wrong["tokens"] = _("Must be from 0 to %s.") % grouped(MOST_TOKENS)
    if money is not None and not (money.is_finite() and 0 <= money <= MOST_MONEY):
        wrong["money"] = _("Must be from 0 to %s.") % grouped(MOST_MONEY)
    if wrong:
        raise Invalid(fields=wrong)


def _said(tokens: int | None, money: Decimal | None) -> dict[str, Word | list[Word]]:
    return {"tokens": tokens, "money": None if money is None else str(money)}


def _set(now: datetime, tokens: int | None, money: Decimal | None, **of: Any) -> Budget | None:
    if tokens is None and money is None:
        Budget.objects.filter(**of).delete()
        return None
    values = {"tokens": tokens, "money": money, "updated_at": now}
    return Budget.objects.update_or_create(defaults=values, **of)[0]
