"""Making room: above the cap the least valuable automatic memories go, softly and in the background."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import connection, transaction

from memories.gate import delete_memory
from memories.models import Memory
from memories.models.memory import RevisionAction

# Value = 0.2 * max(recency of created, of accessed) + 0.1 * importance; recency = 0.5^(age / 30 days).
# What a person saved or imported, and what is pinned, is not among them. Locked rows are in use: they stay this time.
_LEAST = """
SELECT id FROM memories_memory
WHERE workspace_id = %(workspace)s AND owner_id IS NOT DISTINCT FROM %(owner)s AND deleted_at IS NULL AND NOT pinned
  AND (expires_at IS NULL OR expires_at > %(now)s)
  AND (source_type = 'model' OR source_type LIKE 'auto\\_%%')
ORDER BY 0.2 * power(0.5, date_part('epoch', %(now)s - greatest(created_at, last_accessed_at)) / 2592000.0)
         + 0.1 * importance, id
LIMIT %(excess)s
FOR UPDATE SKIP LOCKED
"""
_COUNT = """
SELECT count(*) FROM memories_memory
WHERE workspace_id = %(workspace)s AND owner_id IS NOT DISTINCT FROM %(owner)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > %(now)s)
  AND (source_type = 'model' OR source_type LIKE 'auto\\_%%')
"""


def evict(workspace_id: int, owner_id: int | None, *, now: datetime) -> int:
    """Softly delete what exceeds ``MEMORYHUB_MAX_MEMORIES`` in this workspace and owner; how many went."""
    params = {"workspace": workspace_id, "owner": owner_id, "now": now}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_COUNT, params)
        excess = cursor.fetchone()[0] - settings.MAX_MEMORIES
        if not settings.MAX_MEMORIES or excess <= 0:
            return 0
        cursor.execute(_LEAST, {**params, "excess": excess})
        ids = [row[0] for row in cursor.fetchall()]
        for memory in Memory.objects.filter(pk__in=ids).select_related("workspace", "owner"):
            delete_memory(memory, by=None, now=now, action=RevisionAction.EVICT)
    return len(ids)
