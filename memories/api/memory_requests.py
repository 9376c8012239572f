"""Saving, changing, deleting, listing and recalling memories for both REST APIs."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.response import Response

from memories.access import get_memory, live_in
from memories.api.serializers import MemoryJson, MemoryUpdate
from memories.models import Memory
from memories.models.memory import MEMORY, MemoryQuerySet, Review
from memories.recalling.recall import Recall, recall
from memories.writing import gate
from memories.writing.changing import etag, set_sources
from memories.writing.gate import Saved
from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import NotFound
from workspaces.actions.workspaces import choose_agent
from workspaces.api.base import ApiView, versions_seen
from workspaces.api.paging import PreparedList
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import searchable
from workspaces.models import Agent, User, Workspace

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
    """Load only the columns that ``MemoryJson`` uses. Annotate ``searchable``: whether there is an active vector."""
    rows = memories.listed().select_related("replaced_by")
    return rows.annotate(searchable=searchable(MEMORY)).only(*_SHOWN)


def named_agent(workspace: Workspace, values: dict[str, Any], **options: bool) -> Agent | None:
    """Remove ``agent_id`` from the values of a request, and return the assistant with this id, if any."""
    agent_id = values.pop("agent_id", None)
    return choose_agent(workspace, agent_id, **options) if agent_id is not None else None


def recalled(user: User, workspace: Workspace, values: dict[str, Any], **options: Any) -> Recall:
    """Run ``recall`` with the values of a request body. ``options`` are further arguments."""
    agent = named_agent(workspace, values, or_archived=True)
    options |= {"policy": DataPolicy.here(workspace), "now": timezone.now()}
    return recall(workspace=workspace, user=user, agent=agent, **values, **options)


_ONE = PreparedQuery(
    lambda pk, workspace: described(Memory.objects.filter(pk=pk, workspace=workspace)), pk=int, workspace=int
)
LIVE_IN = PreparedList(
    lambda workspace, user, now: described(live_in(Workspace(pk=workspace), User(pk=user), now)),
    workspace=int,
    user=int,
    now=datetime,
)


def memory_response(memory: Memory, *, status: int = 200, **more: Any) -> Response:
    """Return a response with the stored memory, its ETag and the fields ``more``. Raises NotFound if it is gone."""
    row = _ONE.first(pk=memory.pk, workspace=memory.workspace_id)
    if row is None:
        raise NotFound(_("This memory has since been forgotten."))
    return Response({**MemoryJson(row).data, **more}, status=status, headers={"ETag": etag(row)})


def save(view: ApiView, workspace: Workspace, values: dict[str, Any], *, default_category: str = "") -> Saved:
    """Save the memory that a request body describes. A repeated ``Idempotency-Key`` saves nothing."""
    named, dedupe = {*values}, values.pop("dedupe")
    agent = named_agent(workspace, values)
    if default_category:
        values.setdefault("category", default_category)
    draft = gate.Draft(workspace=workspace, author=view.person, agent=agent, named=named, **values)
    now = timezone.now()
    return save_once(view, lambda: gate.save_memory(draft, by=view.person, now=now, dedupe=dedupe))


def save_once(view: ApiView, save: Callable[[], Saved]) -> Saved:
    """Call ``save`` once per ``Idempotency-Key``. A repeated request returns the first result with the current memory.

    Raises NotFound if the memory has been deleted since, or the person may no longer see it.
    """
    return view.once(
        save,
        keep=lambda saved: {**vars(saved), "memory": saved.memory.public_id},
        reload=lambda note: Saved(**{**note, "memory": _as_it_is(view.person, note["memory"])}),
    )


def saved_response(saved: Saved, **more: Any) -> Response:
    """Return a response with the memory: 201 if it is new, 200 if it existed already."""
    code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
    return memory_response(saved.memory, status=code, duplicate=saved.duplicate, **more)


def change(view: ApiView, memory: Memory, changes: dict[str, Any]) -> Memory:
    """Apply the changes of a PATCH. A repeated ``Idempotency-Key`` changes nothing.

    Raises Stale if the memory does not have the version in the request's ``If-Match`` header.
    """
    sources = changes.pop("sources", None)
    if newer := changes.get("replaced_by"):
        changes["replaced_by"] = get_memory(view.person, newer, workspace=memory.workspace)
    seen = versions_seen(view.request)

    def edit() -> Memory:
        now = timezone.now()
        edited = gate.edit_memory(memory, by=view.person, now=now, seen=seen, **changes)
        return edited if sources is None else set_sources(edited, sources, now=now)

    return view.make_once(edit, get_memory)


def change_memory(view: ApiView, memory: Memory) -> Response:
    return memory_response(change(view, memory, view.body(MemoryUpdate)))


def delete_memory(view: ApiView, memory: Memory) -> Response:
    gate.delete_memory(memory, by=view.person, now=timezone.now(), seen=versions_seen(view.request))
    return Response(status=status.HTTP_204_NO_CONTENT)


def _as_it_is(user: User, memory_id: str) -> Memory:
    waiting = Memory.objects.visible_to(user).filter(review=Review.PENDING, public_id=memory_id).first()
    return waiting or get_memory(user, memory_id)
