"""Memories as the API shows them: with everything a row needs in one query."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from memories.models import Memory
from memories.models.memory import MEMORY, MemoryQuerySet
from memories.usage import live_in
from memories.writing.versions import etag
from memoryhub.database.queries import Ready
from memoryhub.errors import NotFound
from memoryhub.llm.registry import get_embedder
from workspaces.api.serializers import person_json
from workspaces.index.embedding import searchable
from workspaces.models import User, Workspace
from workspaces.rest.fields import iso
from workspaces.rest.paging import ReadyList

# fmt: off
_SHOWN = (
    "public_id", "content", "summary", "category", "key",
    "tags", "importance", "pinned", "expires_at", "scope",
    "source_type", "source_details", "source_chat_id", "source_message_id", "created_at", "updated_at",
    "last_accessed_at", "agent__public_id", "workspace__public_id", "author__public_id", "author__username",
    "edited_by__public_id", "edited_by__username", "edited_at",
    "imported_by__public_id", "imported_by__username", "imported_at",
    "may_replace__public_id", "may_replace__deleted_at", "may_replace__expires_at",
)
# fmt: on


def described(memories: MemoryQuerySet) -> MemoryQuerySet:
    """With what ``memory_json`` asks for and no more, and whether its vector is there (``searchable``)."""
    return memories.listed().annotate(searchable=searchable(MEMORY)).only(*_SHOWN)


_ONE = Ready(
    lambda pk, workspace: described(Memory.objects.filter(pk=pk, workspace=workspace)), pk=int, workspace=int
)
LIVE_IN = ReadyList(
    lambda workspace, user, now: described(live_in(Workspace(pk=workspace), User(pk=user), now)),
    workspace=int,
    user=int,
    now=datetime,
)


def memory_json(memory: Memory) -> dict[str, Any]:
    """What ``serializers.MemoryJson`` describes, in a tenth of its time. The memory is ``described``, or recalled."""
    older = memory.may_replace
    by_meaning: bool = memory.searchable  # type: ignore[attr-defined]  # annotated
    return {
        "id": memory.public_id,
        "content": memory.content,
        "summary": memory.summary,
        "category": memory.category,
        "key": memory.key,
        "tags": memory.tags,
        "importance": memory.importance,
        "pinned": memory.pinned,
        "expires_at": iso(memory.expires_at) if memory.expires_at else None,
        "scope": memory.scope,
        "agent_id": memory.agent.public_id if memory.agent else None,
        "source_type": memory.source_type,
        "source_chat_id": memory.source_chat_id or None,
        "source_message_id": memory.source_message_id or None,
        "rests_on": _rests_on(memory.rests_on),
        "workspace_id": memory.workspace.public_id,
        "author": person_json(memory.written_by) if memory.written_by else None,
        "edited_by": person_json(memory.edited_by) if memory.edited_by else None,
        "imported": memory.is_imported,
        "imported_by": person_json(memory.imported_by) if memory.imported_by else None,
        "may_replace": older.public_id if older is not None and older.is_live else None,
        "searchable": by_meaning and get_embedder() is not None,
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "last_accessed_at": iso(memory.last_accessed_at) if memory.last_accessed_at else None,
    }


def _rests_on(named: dict[str, str] | None) -> dict[str, str | None] | None:
    return {"speaker": named["speaker"], "id": named["id"] or None} if named else None


def memory_response(memory: Memory, *, status: int = 200, **more: Any) -> Response:
    """One memory as it is now, with its ETag. ``more`` stands beside its fields."""
    row = _ONE.first(pk=memory.pk, workspace=memory.workspace_id)
    if row is None:
        raise NotFound(_("This memory has since been forgotten."))
    return Response({**memory_json(row), **more}, status=status, headers={"ETag": etag(row)})
