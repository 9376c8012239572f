"""Writing down what calls of models took: one statement for an answer, a job, a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memoryhub.llm.metering import Meter, Metered, metered
from memoryhub.llm.usage import Parts, Usage
from workspaces.models.connections import Purpose
from workspaces.spending.bill import NUMBERS, Account, Bill, Rate

_SUMS = [*NUMBERS, "cost"]
_VALUES = ", ".join(f"%({name})s" for name in _SUMS)
# A person deleted in between is not named: a number must not fail for that. To the constraint no two rows of nobody
# are one, or the sums of two people could not outlive them: what is added to one of those is added by its key.
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
    """Write down what the meter has; None where that is nothing. The meter lets go of it with the commit: done again
    after a rollback it is counted once. One statement, whose row stays locked to the end of the transaction.
    """
    total = meter.total()
    bill = put(account, total, now)
    if bill is not None:
        transaction.on_commit(lambda: meter.forget(total))
    return bill


@contextmanager
def counted(account: Account) -> Iterator[None]:
    """Write down what models take in this block, however it ends. Outside of transactions."""
    with metered() as meter:
        try:
            yield
        finally:
            put(account, meter.total(), timezone.now())


def put(account: Account, total: Metered, now: datetime) -> Bill | None:
    """Write this down, for a caller who has the meter let go of it by themselves once it is committed."""
    if not total.usage.calls:
        return None
    bill = Bill.of(total, account.rate)
    _write(_OF_SOMEBODY, account, bill, now)
    return bill


def record_embedding(model: str, usage: Usage) -> None:
    """Record the usage of an embedder, which works for many at once: for the installation as a whole."""
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
