"""Vectors that are computed after the save: storing them, and the search for near-duplicates that had to wait."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from memories.indexing import queue_embedding
from memories.models import Memory
from memories.writing.changing import announce, record_wordings
from memories.writing.decide import Known, New, Stored, decide, one_writer_at_a_time
from memories.writing.gate import delete_memory
from workspaces.index.embedding import Embedded, put_vectors


def reembed(memories: QuerySet[Memory]) -> int:
    """Queue jobs that embed these memories again. Return the number of memories."""
    ids = list(memories.filter(deleted_at=None).values_list("pk", flat=True))
    Memory.objects.filter(pk__in=ids).update(embedding_failed_at=None)
    queue_embedding(ids)
    return len(ids)


def store_late_vector(memory: Memory, embedded: Embedded, *, now: datetime) -> None:
    """Store a vector computed in the background, unless the memory has changed, and look for its duplicates."""
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
            record_wordings([(older, memory.content)], by=None, now=now)
            delete_memory(memory, by=None, now=now, into=older)
        case New(older) if older is not None:
            Memory.objects.filter(pk=memory.pk).update(may_replace=older)
