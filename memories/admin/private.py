"""Personal memories are their owner's alone, some of them from private chats: reading them is a right of its own."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet


def may_read_personal(user: Any) -> bool:
    return bool(user.has_perm("memories.read_personal_memory"))


def readable(rows: QuerySet[Any], user: Any) -> QuerySet[Any]:
    """Those of these memories that this member of staff may read, given that they may look at memories at all."""
    return rows if may_read_personal(user) else rows.filter(owner=None)
