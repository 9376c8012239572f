"""Monthly budgets of workspaces and people.

A budget warns from four fifths on, and stops models at the limit. Months are in UTC. The built-in model costs nothing
and is not limited. Usage of a person's own connection counts only against that person, because their own server
reports it. Budgets are checked before a turn, and in runs before each call. A started turn is completed, so concurrent
turns can exceed a budget by their own usage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import formats
from django.utils.translation import gettext as _

from memoryhub.database.queries import current_connection
from memoryhub.errors import DomainError, Forbidden, Invalid
from memoryhub.localization import grouped
from workspaces.access import require
from workspaces.audit import Verb, Word
from workspaces.audit import record as audit
from workspaces.models import Role, User, Workspace
from workspaces.models.language_models import Budget
from workspaces.spending.usage_records import ABOUT, Account, Rate, amount

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
    def of(self) -> str:
        return "workspace" if self.of_workspace else "person"

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
            values = {"taken": about + amount(self.money_taken), "most": amount(self.money)}
            return _("%(taken)s of %(most)s") % values
        values = {"taken": about + grouped(self.tokens_taken), "most": grouped(self.tokens or 0)}
        return _("%(taken)s of %(most)s tokens") % values

    @property
    def sentence(self) -> str:
        """Return a sentence about a budget that is nearly or fully used: the usage, when it renews, and who can raise
        it.
        """
        values = {"taken": self.taken, "day": formats.date_format(self.renewed_on, "DATE_FORMAT")}
        if self.is_spent and self.of_workspace:
            text = _(
                "This workspace's budget for the month is used up: %(taken)s. No model that costs something "
                "answers here until %(day)s. An owner can raise the budget in the settings, under Usage."
            )
        elif self.is_spent:
            text = _(
                "Your budget for the month is used up: %(taken)s. No model that costs something answers you until "
                "%(day)s. An administrator can raise it."
            )
        elif self.of_workspace:
            text = _(
                "This workspace has used %(taken)s of its budget for this month, which renews on %(day)s."
            )
        else:
            text = _("You have used %(taken)s of your budget for this month, which renews on %(day)s.")
        return text % values


def _share(usage: Decimal, most: int | Decimal | None) -> Decimal:
    if most is None:
        return Decimal(-1)
    return usage / most if most else Decimal(1)


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
        budgets = [
            Standing(row[0], row[1], row[2], int(row[3]), row[4], row[5], renewed)
            for row in cursor.fetchall()
        ]
    return sorted(budgets, key=lambda standing: standing.share, reverse=True)


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
) -> None:
    """Set the workspace's monthly budget; with neither tokens nor money, remove it.

    Raises Forbidden if ``by`` is no owner.
    """
    require(workspace.role, Role.OWNER)
    _check(tokens, money)
    with transaction.atomic():
        audit(Verb.BUDGET_SET, by=by, workspace=workspace, details=_said(tokens, money))
        _set(now, tokens, money, workspace_id=workspace.pk)


def set_person_budget(
    user: User, *, tokens: int | None, money: Decimal | None, by: User, now: datetime
) -> None:
    """Set a person's monthly budget for all workspaces. Raises Forbidden if ``by`` is no administrator."""
    if not (by.is_active and by.is_staff and by.is_superuser):
        raise Forbidden(_("Only administrators can set a person's budget."))
    _check(tokens, money)
    with transaction.atomic():
        audit(Verb.BUDGET_SET, by=by, target=user.public_id, details=_said(tokens, money))
        _set(now, tokens, money, user_id=user.pk)


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


def _set(now: datetime, tokens: int | None, money: Decimal | None, **of: Any) -> None:
    if tokens is None and money is None:
        Budget.objects.filter(**of).delete()
    else:
        values = {"tokens": tokens, "money": money, "updated_at": now}
        Budget.objects.update_or_create(defaults=values, **of)
