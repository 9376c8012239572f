"""Saving, changing and deleting memories, shared by both REST APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rest_framework import status
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.queries import memory_response, named_agent
from memories.api.serializers import MemoryUpdate
from memories.models import Memory
from memories.models.memory import Review
from memories.writing import gate
from memories.writing.gate import Saved
from memories.writing.sources import set_sources
from workspaces.api.base import ApiView, versions_seen
from workspaces.models import User, Workspace


def save(view: ApiView, workspace: Workspace, values: dict[str, Any], *, default_category: str = "") -> Saved:
    """Save the memory that a request body describes, once per ``Idempotency-Key``."""
    named, dedupe = {*values}, values.pop("dedupe")
    agent = named_agent(workspace, values)
    if default_category:
        values.setdefault("category", default_category)
    draft = gate.Draft(workspace=workspace, author=view.person, agent=agent, named=named, **values)
    now = timezone.now()
    return save_once(view, lambda: gate.save_memory(draft, by=view.person, now=now, dedupe=dedupe))


def save_once(view: ApiView, save: Callable[[], Saved]) -> Saved:
    """Run ``save`` once per ``Idempotency-Key`` and return its result.

    For a repeated key, return the first result with the memory as it is now. Raises NotFound if that memory has since
    been deleted or the person may no longer see it.
    """
    return view.once(
        save,
        keep=lambda saved: {
            "memory": saved.memory.public_id,
            "created": saved.created,
            "duplicate": saved.duplicate,
            "pending": saved.pending,
        },
        reload=lambda note: Saved(
            _as_it_is(view.person, note["memory"]),
            created=note["created"],
            duplicate=note["duplicate"],
            pending=note.get("pending", False),
        ),
    )


def saved_response(saved: Saved, **more: Any) -> Response:
    """Respond with 201 for a new memory, or 200 if it was updated by its key or already known (``duplicate``)."""
    code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
    return memory_response(saved.memory, status=code, duplicate=saved.duplicate, **more)


def change(view: ApiView, memory: Memory, changes: dict[str, Any]) -> Memory:
    """Apply the changes of a PATCH, once per ``Idempotency-Key``.

    Raises Stale if the request has ``If-Match`` and the memory has changed since that version.
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
