"""Writes of background jobs: eviction above the limit, retention (``workspaces.retention``), and late vectors."""

from datetime import datetime
from functools import partial

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest

from memories.indexing import queue_embedding
from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing.changing import announce, note_wordings
from memories.writing.decide import Known, New, Stored, decide, one_writer_at_a_time
from memories.writing.gate import COUNTED, delete_memory, excess
from workspaces.index.embedding import Embedded, put_vectors
from workspaces.retention import BY_RULE, SHARED, Kept

BATCH = 50  # rows locked at a time, which bounds how long other writers wait

# Two concurrent jobs for one scope would remove the same excess twice, so the second waits and counts again.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('memories.eviction'), %s)"
# Value = 0.2 * max(recency of created, of accessed) + 0.1 * importance; recency = 0.5^(age / 30 days).
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
    """Soft-delete the least useful memories of a scope until it has at most ``MEMORYHUB_MAX_MEMORIES`` automatic ones.

    The scope is given by workspace, owner and assistant. Return the number deleted.
    """
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


def reembed(memories: QuerySet[Memory]) -> int:
    """Queue jobs that embed these memories again. Return the number of memories."""
    ids = list(memories.filter(deleted_at=None).values_list("pk", flat=True))
    Memory.objects.filter(pk__in=ids).update(embedding_failed_at=None)
    queue_embedding(ids)
    return len(ids)


def store_late_vector(memory: Memory, embedded: Embedded, *, now: datetime) -> None:
    """Store a vector computed in the background, unless the memory was edited or deleted in the meantime.

    If the memory was saved without a vector, it is now compared with older ones, and soft-deleted if it is a duplicate.
    A memory with ``own_row`` is not compared.
    """
    with transaction.atomic():
        one_writer_at_a_time(memory.workspace)
        locked = Memory.objects.select_for_update(of=("self",)).filter(pk=memory.pk, deleted_at=None).first()
        made_of = (memory.content, memory.source_excerpt)
        if locked is None or (locked.content, locked.source_excerpt) != made_of:
            return
        is_as_saved = locked.updated_at == locked.created_at and not locked.embeddings.exists()
        if not put_vectors(embedded.model, [(locked, embedded)]):
            queue_embedding([locked.pk])  # recall changed to another model in between
            return
        Memory.objects.filter(pk=locked.pk).update(embedding_failed_at=None)
        if is_as_saved and not locked.own_row:
            _compare_late(locked, embedded, now=now)
        announce(locked, "embed")


def _compare_late(memory: Memory, embedded: Embedded, *, now: datetime) -> None:
    """Compare a memory with older ones. Soft-delete an unpinned duplicate, or link an older one that it may replace."""
    verdict = decide(memory, Stored(memory, embedded, now, before=memory.pk), now=now, forgotten=False)
    match verdict:
        case Known(older) if not memory.pinned:
            note_wordings([(older, memory.content)], by=None, now=now)
            delete_memory(memory, by=None, now=now, into=older)
        case New(older) if older is not None:
            Memory.objects.filter(pk=memory.pk).update(may_replace=older)
