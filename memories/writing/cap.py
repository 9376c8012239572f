"""The limit of automatic memories: ``MEMORYHUB_MAX_MEMORIES`` for each workspace, owner and assistant.

After every automatic save, a query on a small partial index counts up to the limit. ``memories.writing.eviction``
deletes the excess.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django_q.tasks import async_task

# Live memories that a model or a conversation made. The condition must repeat that of the partial index
# memory_automatic, or Postgres would not use it.
COUNTED = """
    workspace_id = %(workspace)s AND owner_id IS NOT DISTINCT FROM %(owner)s AND deleted_at IS NULL
    AND agent_id IS NOT DISTINCT FROM %(agent)s
    AND (expires_at IS NULL OR expires_at > %(now)s)
    AND (source_type = 'model' OR source_type::text LIKE 'auto\\_%%')
"""


_COUNT = f"SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE {COUNTED} LIMIT %(most)s) counted"  # noqa: S608


def excess(
    workspace_id: int, owner_id: int | None, agent_id: int | None = None, *, now: datetime, most: int
) -> int:
    """Return by how many memories this scope exceeds the limit, counting at most ``most``; 0 without a limit."""
    if not settings.MAX_MEMORIES:
        return 0
    params = {
        "workspace": workspace_id,
        "owner": owner_id,
        "agent": agent_id,
        "now": now,
        "most": settings.MAX_MEMORIES + most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, params)
        return max(0, int(cursor.fetchone()[0]) - settings.MAX_MEMORIES)


@dataclass(frozen=True)
class _KeepToCap:
    """A job to run after the commit, which queues an eviction if the scope is above the limit."""

    workspace_id: int
    owner_id: int | None
    agent_id: int | None

    def __call__(self) -> None:
        place = asdict(self)
        if excess(**place, now=timezone.now(), most=1):
            async_task("memories.tasks.evict", task_name="make room", **place)


def keep_to_cap(workspace_id: int, owner_id: int | None, agent_id: int | None = None) -> None:
    """Check the limit after the commit, and queue an eviction if this scope exceeds it.

    The check runs once per scope and transaction, however many memories the transaction saves.
    """
    if not settings.MAX_MEMORIES:
        return
    job = _KeepToCap(workspace_id, owner_id, agent_id)
    if not any(waiting[1] == job for waiting in connection.run_on_commit):
        transaction.on_commit(job)
