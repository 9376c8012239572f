"""Querysets, recall and responses for memories in the REST APIs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.response import Response

from memories.api.serializers import MemoryJson
from memories.models import Memory
from memories.models.memory import MEMORY, MemoryQuerySet
from memories.recalling.recall import Recall, recall
from memories.usage import live_in
from memories.writing.versions import etag
from memoryhub.database.queries import Ready
from memoryhub.errors import NotFound
from workspaces.actions.agents import choose_agent
from workspaces.api.pagination import ReadyList
from workspaces.index.embedding import searchable
from workspaces.models import Agent, User, Workspace
from workspaces.policy import Reach

# fmt: off
_SHOWN = (
    "public_id", "content", "summary", "category", "key",
    "tags", "importance", "pinned", "expires_at", "valid_from", "valid_to", "replaced_by__public_id", "scope",
    "source_type", "source_details", "source_chat_id", "source_message_id", "created_at", "updated_at",
    "last_accessed_at", "agent__public_id", "workspace__public_id", "author__public_id", "author__username",
    "edited_by__public_id", "edited_by__username", "edited_at",
    "imported_by__public_id", "imported_by__username", "imported_at",
    "may_replace__public_id", "may_replace__deleted_at", "may_replace__expires_at", "may_replace__replaced_by",
)
# fmt: on


def described(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Load only the columns that ``MemoryJson`` uses, and annotate whether a memory has its vector (``searchable``)."""
    return (
        memories.listed().select_related("replaced_by").annotate(searchable=searchable(MEMORY)).only(*_SHOWN)
    )


def named_agent(workspace: Workspace, values: dict[str, Any], **options: bool) -> Agent | None:
    """Remove ``agent_id`` from ``values`` and return that assistant, or None if it is not given."""
    agent_id = values.pop("agent_id", None)
    return choose_agent(workspace, agent_id, **options) if agent_id is not None else None


def recalled(user: User, workspace: Workspace, values: dict[str, Any], **options: Any) -> Recall:
    """Recall memories for a request body, including those of the assistant that it names."""
    agent = named_agent(workspace, values, or_archived=True)
    reach = Reach.here(workspace)
    return recall(
        workspace=workspace, user=user, agent=agent, reach=reach, now=timezone.now(), **values, **options
    )


_ONE = Ready(
    lambda pk, workspace: described(Memory.objects.filter(pk=pk, workspace=workspace)), pk=int, workspace=int
)
LIVE_IN = ReadyList(
    lambda workspace, user, now: described(live_in(Workspace(pk=workspace), User(pk=user), now)),
    workspace=int,
    user=int,
    now=datetime,
)


def memory_response(memory: Memory, *, status: int = 200, **more: Any) -> Response:
    """Respond with the memory as it is now and its ETag; ``more`` adds fields. One query.

    Raises NotFound if the memory has been forgotten.
    """
    row = _ONE.first(pk=memory.pk, workspace=memory.workspace_id)
    if row is None:
        raise NotFound(_("This memory has since been forgotten."))
    return Response({**MemoryJson(row).data, **more}, status=status, headers={"ETag": etag(row)})
