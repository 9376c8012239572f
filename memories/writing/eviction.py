"""Deletion of the least useful automatic memories above the limit, and of those that a retention rule ends."""

from datetime import datetime
from functools import partial

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Greatest

from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing.gate import COUNTED, delete_memory, excess
from workspaces.retention import BY_RULE, SHARED, Kept

BATCH = 50  # rows locked at a time, which bounds how long other writers wait

# Two concurrent jobs for one scope would remove the same excess twice, so the second waits and counts again.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('memories.eviction'), %s)"
# The value is 0.2 * max(recency of created, of accessed) + 0.1 * importance; recency = 0.5^(age / 30 days).
# Memories that a person saved, imported or pinned are never evicted. Rows locked by other transactions are skipped.
_LEAST = f"""
SELECT id FROM memories_memory
WHERE {COUNTED} AND NOT pinned
ORDER BY 0.2 * power(0.5::float8, greatest(0, date_part('epoch',
             %(now)s - greatest(created_at, last_accessed_at))) / 2592000.0)
         + 0.1 * importance, id
LIMIT %(excess)s
FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants only


def evict_least_useful(
    workspace_id: int, owner_id: int | None, agent_id: int | None = None, *, now: datetime
) -> int:
    """Soft-delete a scope's least useful automatic memories above ``MEMORYHUB_MAX_MEMORIES``. Return their number."""
    gone = 0
    while batch := _evict_batch(workspace_id, owner_id, agent_id, now):
        gone += batch
    return gone


def _evict_batch(workspace_id: int, owner_id: int | None, agent_id: int | None, now: datetime) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ONE_AT_A_TIME, [workspace_id % 2**31])
        above = excess(workspace_id, owner_id, agent_id, now=now, most=BATCH)
        if not above:
            return 0
        place = {"workspace": workspace_id, "owner": owner_id, "agent": agent_id}
        cursor.execute(_LEAST, {**place, "now": now, "excess": above})
        ids = [row[0] for row in cursor.fetchall()]
        for memory in Memory.objects.filter(pk__in=ids).select_related("workspace", "owner"):
            delete_memory(memory, by=None, now=now, action=RevisionAction.EVICT)
    return len(ids)


# The last use or change. Postgres's GREATEST ignores NULL.
MEMORIES = Kept(
    name="memories",
    rows=lambda: Memory.objects.filter(deleted_at=None, pinned=False).defer("search"),
    since=Greatest("created_at", "updated_at", "last_accessed_at"),
    shared=SHARED,
    of=lambda user: Q(owner=user),
    delete=partial(delete_memory, by=None),
    by_rule=BY_RULE,
)
