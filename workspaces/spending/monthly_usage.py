"""Monthly totals of a workspace, or of a person in all workspaces."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Case, Exists, F, OuterRef, QuerySet, Sum, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Invalid
from workspaces.models import Membership, ModelUse, Purpose, Role, User, Workspace
from workspaces.spending.budgets import Standing, first_of_month, first_of_next, standings
from workspaces.spending.usage_records import NUMBERS, Bill

MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")
NO_MONTH = later("must be a month such as 2026-11")
# A workspace may have a new name since they left, which they may not see.
_IS_IN = Exists(Membership.objects.order_by().filter(workspace=OuterRef("workspace"), user=OuterRef("user")))
_PLACE = {
    "place": Case(When(_IS_IN, then=F("workspace__name")), default=Value("")),
    "place_id": Case(When(_IS_IN, then=F("workspace__public_id")), default=Value("")),
}
_SUMS = {name: Sum(name) for name in (*NUMBERS, "cost")}


@dataclass(frozen=True)
class Line:
    """A line of a total.

    ``label``: a day, person, purpose, model, workspace or chat. ``id``: set for a workspace or chat that the reader may
    open. ``address``: the URL of its page, if it has one.
    """

    label: str
    bill: Bill
    day: date | None = None
    id: str | None = None
    address: str = ""


@dataclass(frozen=True)
class Month:
    """The usage in one month.

    ``people``: all members with usage if the reader owns the workspace, else the reader only. ``workspaces``: a
    person's workspaces; those that they have left are summed up. ``chats``: the chats with the largest usage that the
    reader may open.
    """

    first: date
    total: Bill
    days: list[Line]
    purposes: list[Line]
    models: list[Line]
    people: list[Line]
    workspaces: list[Line]
    chats: list[Line]
    budgets: list[Standing]

    @property
    def name(self) -> str:
        return f"{self.first:%Y-%m}"

    @property
    def currency(self) -> str:
        return settings.CURRENCY

    @property
    def before(self) -> str:
        """Return the previous month, as a query parameter."""
        first = self.first
        return f"{first.year - (first.month == 1):04}-{(first.month - 2) % 12 + 1:02}"

    @property
    def most(self) -> int:
        """Return the largest number of tokens of a day, for the chart's scale."""
        return max((line.bill.tokens for line in self.days), default=0)


ChatsOf = Callable[[User, Workspace | None, date], list[Line]]
_chats: list[ChatsOf] = []


def register_chats(of: ChatsOf) -> None:
    """Register the chat app's function that returns the chats with the largest usage."""
    _chats[:] = [of]


def month_of(text: str, *, now: datetime) -> date:
    """Return the first day of a month such as ``2026-11``, by default the current one.

    Raises Invalid for another format.
    """
    if not text:
        return first_of_month(now)
    if not MONTH.fullmatch(text):
        raise Invalid(fields={"month": NO_MONTH})
    return date.fromisoformat(f"{text}-01")


def of_workspace(workspace: Workspace, user: User, first: date, *, now: datetime) -> Month:
    """Return a workspace's usage in the month that begins at ``first``. Six queries.

    Owners see the usage of all members, others only their own.
    """
    rows = of_month(ModelUse.objects.filter(workspace=workspace), first)
    sees_all = workspace.role == Role.OWNER
    if not sees_all:
        rows = rows.filter(user=user)
    budgets = standings(workspace.pk, user.pk, now=now)
    seen = [each for each in budgets if sees_all or not each.of_workspace]
    return _month(rows, first, seen, user, workspace)


def of_person(user: User, first: date, *, now: datetime) -> Month:
    """Return this person's usage over all workspaces in the month that begins at ``first``. Seven queries."""
    return _month(_of_person(user, first), first, standings(None, user.pk, now=now), user, None)


def usage_this_month(user: User, *, now: datetime) -> Bill:
    """Return this person's usage in the current month. One query."""
    return total_of(_of_person(user, first_of_month(now)))


def total_of(rows: QuerySet[ModelUse]) -> Bill:
    return _bill({name: number or 0 for name, number in rows.aggregate(**_SUMS).items()})


def _of_person(user: User, first: date) -> QuerySet[ModelUse]:
    return of_month(ModelUse.objects.filter(user=user), first)


def of_month(rows: QuerySet[ModelUse], first: date) -> QuerySet[ModelUse]:
    return rows.filter(day__gte=first, day__lt=first_of_next(first))


def _month(
    rows: QuerySet[ModelUse], first: date, budgets: list[Standing], user: User, workspace: Workspace | None
) -> Month:
    days = [
        Line(row["day"].isoformat(), _bill(row), row["day"])
        for row in rows.order_by("day").values("day").annotate(**_SUMS)
    ]

    def named(workspace_name: str) -> str:
        return workspace_name or _("Workspaces you have left")

    return Month(
        first=first,
        total=sum((line.bill for line in days), Bill()),
        days=days,
        purposes=_by(rows, "purpose", lambda purpose: str(Purpose(purpose).label)),
        models=_by(rows, "model", lambda name: name or _("Own connections")),
        people=_by(rows, "user__username", lambda name: name or _("People who left")),
        workspaces=[] if workspace else _by(rows.annotate(**_PLACE), "place", named, id="place_id"),
        chats=[line for of in _chats for line in of(user, workspace, first)],
        budgets=budgets,
    )


def _by(rows: QuerySet[ModelUse], name: str, say: Callable[[str], str], *, id: str = "") -> list[Line]:
    """Return a line for each value of the column ``name``, most expensive first, then by tokens.

    ``say``: converts the value to a label. ``id``: the column of the line's public id.
    """
    lines = [
        Line(say(row[name] or ""), _bill(row), id=(row[id] or None) if id else None)
        for row in rows.order_by().values(*filter(None, (name, id))).annotate(**_SUMS)
    ]
    return sorted(lines, key=lambda line: (line.bill.cost, line.bill.tokens), reverse=True)


def _bill(row: Any) -> Bill:
    return Bill(**{name: int(row[name]) for name in NUMBERS}, cost=Decimal(row["cost"]))


LARGEST = 5


def largest(rows: QuerySet[ModelUse], key: str, name: str) -> list[tuple[Any, str, Bill]]:
    """Return the groups of rows with the largest usage, most expensive first, then by tokens. One query.

    ``key`` and ``name``: the columns that identify and name a group. Rows without a ``key`` are left out.
    """
    sums = rows.order_by().exclude(**{key: None}).values(*{key, name}).annotate(**_SUMS)
    return [(row[key], row[name], _bill(row)) for row in sums.order_by("-cost", "-tokens_in")[:LARGEST]]
