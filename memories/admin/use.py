"""What models took this month, on the admin's first page: the whole, and who took most of it.

Shown to who may look at the list of sums, to which every number leads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from memories.admin.overview import Figure, Group
from workspaces.admin.spending import OWN
from workspaces.spending.bill import Bill, amount
from workspaces.spending.budgets import first_of_month
from workspaces.spending.totals import Taker, Use, use_of_all


@dataclass(frozen=True)
class Ranked:
    name: str
    took: str
    url: str


@dataclass(frozen=True)
class Ranking:
    title: str
    rows: list[Ranked]


def model_use(user: Any, now: datetime, workspace_id: int | None) -> tuple[list[Group], list[Ranking]]:
    """The numbers and who took most, within a workspace where one is chosen. One query, none for who may not look."""
    if not user.has_perm("workspaces.view_modeluse"):
        return [], []
    first = first_of_month(now)
    asked: dict[str, Any] = {"month": f"{first:%Y-%m}"}
    if workspace_id is not None:
        asked["workspace"] = workspace_id
    found = use_of_all(first, workspace_id)
    group = Group("Models this month", list(_figures(found.total, asked)))
    return [group], [ranking for ranking in _rankings(found, asked, workspace_id) if ranking.rows]


def _figures(total: Bill, asked: dict[str, Any]) -> Iterator[Figure]:
    url = _list(asked)
    said = f"{total.tokens_in:,} in, {total.tokens_out:,} out."
    if total.is_estimate:
        said += f" {total.estimated:,} of {total.calls:,} calls are estimated."
    yield Figure("tokens", total.about + _short(total.tokens), url, said)
    if total.has_cost:
        note = f"{total.unpriced:,} calls have no price." if total.unpriced else "All calls have a price."
        yield Figure("cost", total.about + amount(total.cost), url, note)
    yield Figure("calls of models", f"{total.calls:,}", url)


def _rankings(found: Use, asked: dict[str, Any], workspace_id: int | None) -> Iterator[Ranking]:
    if workspace_id is None:
        rows = [_ranked(each, asked | {"workspace": each.key}) for each in found.workspaces]
        yield Ranking("Workspaces", rows)
    yield Ranking("People", [_ranked(each, asked | {"user": each.key}) for each in found.people])
    yield Ranking("Models", [_ranked(each, asked | {"model": each.name or OWN}) for each in found.models])


def _short(number: int) -> str:
    """With room in a tile for a great many: 57.4 M."""
    return f"{number:,}" if number < 10_000_000 else f"{number / 1_000_000:,.1f} M"


def _ranked(taker: Taker, asked: dict[str, Any]) -> Ranked:
    bill = taker.bill
    took = f"{bill.about}{bill.tokens:,}" + (f" · {bill.about}{amount(bill.cost)}" if bill.cost else "")
    return Ranked(taker.name or "Own connections", took, _list(asked))


def _list(asked: dict[str, Any]) -> str:
    return f"{reverse('admin:workspaces_modeluse_changelist')}?{urlencode(asked)}"
