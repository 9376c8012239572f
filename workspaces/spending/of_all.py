"""Usage of models in a month everywhere, or in one workspace, and the biggest users: for administrators."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum

from django.db import connection

from workspaces.spending.bill import Bill
from workspaces.spending.budgets import first_of_next

SHOWN = 5


class By(IntEnum):
    """As Postgres names what a sum is of: a bit for each of workspace, user and model that it is not by."""

    WORKSPACE = 0b011
    PERSON = 0b101
    MODEL = 0b110
    ALL = 0b111


# What is of no workspace or of nobody (deleted since, or the installation's own) is in the whole and has no place.
_SUMS = f"""
WITH sums AS (
  SELECT grouping(workspace_id, user_id, model) AS kind, workspace_id, user_id, model,
    coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,
    coalesce(sum(calls), 0) AS calls, coalesce(sum(estimated), 0) AS estimated,
    coalesce(sum(unpriced), 0) AS unpriced, coalesce(sum(cost), 0) AS cost
  FROM workspaces_modeluse
  WHERE day >= %(first)s AND day < %(next)s AND (%(place)s::bigint IS NULL OR workspace_id = %(place)s::bigint)
  GROUP BY GROUPING SETS ((), (workspace_id), (user_id), (model))
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY kind ORDER BY cost DESC, tokens_in + tokens_out DESC) AS place
  FROM sums
  WHERE (kind <> {By.WORKSPACE:d} OR workspace_id IS NOT NULL) AND (kind <> {By.PERSON:d} OR user_id IS NOT NULL)
)
SELECT kind, coalesce(ranked.workspace_id, ranked.user_id), coalesce(workspace.name, person.username, model, ''),
  tokens_in, tokens_out, calls, estimated, unpriced, cost
FROM ranked
LEFT JOIN workspaces_workspace workspace ON workspace.id = ranked.workspace_id
LEFT JOIN workspaces_user person ON person.id = ranked.user_id
WHERE place <= %(shown)s ORDER BY kind, place
"""  # noqa: S608 - numbers of ours


@dataclass(frozen=True)
class Taker:
    """``key``: of a workspace or a person; a model has its name, empty for the own connections of people."""

    key: int | None
    name: str
    bill: Bill


@dataclass(frozen=True)
class Use:
    """The dearest first, then the largest; at most ``SHOWN`` of each."""

    total: Bill = field(default_factory=Bill)
    workspaces: list[Taker] = field(default_factory=list)
    people: list[Taker] = field(default_factory=list)
    models: list[Taker] = field(default_factory=list)


def use_of_all(first: date, workspace_id: int | None = None) -> Use:
    """Return the usage of the month that begins with ``first``. One statement, which reads that month's sums once."""
    values = {"first": first, "next": first_of_next(first), "place": workspace_id, "shown": SHOWN}
    takers: dict[By, list[Taker]] = {by: [] for by in By}
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, values)
        for kind, key, name, read, written, calls, estimated, unpriced, cost in cursor.fetchall():
            bill = Bill(
                tokens_in=int(read),
                tokens_out=int(written),
                calls=int(calls),
                estimated=int(estimated),
                unpriced=int(unpriced),
                cost=cost,
            )
            takers[By(kind)].append(Taker(key, name, bill))
    return Use(takers[By.ALL][0].bill, takers[By.WORKSPACE], takers[By.PERSON], takers[By.MODEL])
