"""Vectors computed in the background after their memories were saved, and the comparison that follows."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from memories.indexing import queue_embedding
from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing.announcing import announce
from memories.writing.changing import note_wordings
from memories.writing.decide import Known, New, Stored, decide
from memories.writing.gate import delete_memory
from memories.writing.similar import one_writer_at_a_time
from workspaces.index.embedding import Embedded, put_vectors
from workspaces.models import User


def reembed(memories: QuerySet[Memory], *, by: User | None) -> int:
    """Queue embedding these memories again. Return their number."""
    ids = list(memories.filter(deleted_at=None).values_list("pk", flat=True))
    Memory.objects.filter(pk__in=ids).update(embedding_failed_at=None)
    queue_embedding(ids)
    return len(ids)


def store_late_vector(memory: Memory, embedded: Embedded, *, now: datetime) -> None:
    """Store a vector computed in the background, unless the memory was edited or deleted in the meantime.

    A memory that was saved without a vector is now compared with the older ones, unless it was saved as a row of its
    own. If it is a duplicate, the newer memory is soft-deleted.
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
    """Compare a memory with older ones: delete it if it is a duplicate and not pinned, or link it to the one it may
    replace.
    """
    verdict = decide(memory, Stored(memory, embedded, now, before=memory.pk), now=now, forgotten=False)
    match verdict:
        case Known(older) if not memory.pinned:
            note_wordings([(older, memory.content)], by=None, now=now)
            delete_memory(memory, by=None, now=now, action=RevisionAction.MERGE)
        case New(older) if older is not None:
            Memory.objects.filter(pk=memory.pk).update(may_replace=older)
