"""Sources of memories: the public ids of chats and messages. This module does not import chats.

Readers of a memory see its source ids, so an id must reveal nothing. Callers' ids are never looked up, and an id opens
a chat only for people who may open it anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories.models import Memory, MemorySource
from memories.models.memory import MemoryQuerySet
from memories.writing.versions import next_update
from memoryhub.errors import Invalid, NotFound
from memoryhub.ids import LENGTH

MOST_SOURCES = 20
TYPES = {"chat": "chat", "msg": "message"}  # by the prefix of the id
FORM = re.compile(rf"({'|'.join(TYPES)})_[A-Za-z0-9]{{{LENGTH}}}")


def clean_sources(ids: Sequence[str]) -> list[str]:
    """Return the ids in order, without repetitions.

    Raises Invalid unless all are ids of chats or messages, at most MOST_SOURCES.
    """
    if len(ids) > MOST_SOURCES:
        raise Invalid(fields={"sources": _("may have at most %s entries") % MOST_SOURCES})
    for each in ids:
        if not isinstance(each, str) or not FORM.fullmatch(each):
            raise Invalid(fields={"sources": _("must be ids of chats (chat_…) or messages (msg_…)")})
    return list(dict.fromkeys(ids))


def add_sources(memory: Memory, ids: Iterable[str]) -> None:
    """Add cleaned source ids to a new memory, in the transaction that creates it."""
    MemorySource.objects.bulk_create(MemorySource(memory=memory, source_id=each) for each in ids)


def set_sources(memory: Memory, ids: Sequence[str], *, now: datetime) -> Memory:
    """Replace the sources that callers gave. The chat and message from which the memory was extracted stay.

    Raises Invalid for wrong ids, or NotFound if the memory was deleted.
    """
    ids = clean_sources(ids)
    with transaction.atomic():
        locked = Memory.objects.select_for_update(of=("self",)).filter(pk=memory.pk, deleted_at=None).first()
        if locked is None:
            raise NotFound(_("This memory has since been forgotten."))
        before = list(locked.sources.values_list("source_id", flat=True))
        if ids != before:
            locked.sources.all().delete()
            add_sources(locked, ids)
            memory.updated_at = locked.updated_at = next_update(locked, now)
            locked.save(update_fields=["updated_at"])
    return memory


def sources_of(memory: Memory) -> list[dict[str, str]]:
    """Return ``{type, id}`` of each source: the extraction's chat and message first, then those that callers gave."""
    own = [memory.source_chat_id, memory.source_message_id]
    given = [source.source_id for source in memory.sources.all()]
    ids = dict.fromkeys(each for each in [*own, *given] if each)
    return [{"type": TYPES.get(each.split("_")[0], "other"), "id": each} for each in ids]


def from_source(memories: MemoryQuerySet, source_id: str) -> MemoryQuerySet:
    given = MemorySource.objects.filter(source_id=source_id).values("memory")
    return memories.filter(Q(source_chat_id=source_id) | Q(source_message_id=source_id) | Q(pk__in=given))
