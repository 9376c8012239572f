"""Memories as something that is kept for a time only (``workspaces.retention``)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Greatest

from memories.models import Memory
from memories.writing.gate import delete_memory
from workspaces.retention import BY_RULE, SHARED, Kept


def _delete(memory: Memory, *, now: datetime) -> None:
    delete_memory(memory, by=None, now=now)


# Used or changed: Postgres's GREATEST leaves out what is null.
MEMORIES = Kept(
    name="memories",
    rows=lambda: Memory.objects.filter(deleted_at=None, pinned=False).defer("search"),
    since=Greatest("created_at", "updated_at", "last_accessed_at"),
    shared=SHARED,
    of=lambda user: Q(owner=user),
    delete=_delete,
    by_rule=BY_RULE,
)
