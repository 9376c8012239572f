"""Writes to a memory that several doors share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rest_framework import status
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.queries import memory_response
from memories.api.serializers import MemoryUpdate
from memories.models import Memory
from memories.models.memory import Review
from memories.writing import gate
from memories.writing.gate import Saved
from workspaces.models import User
from workspaces.rest.views import ApiView, versions_seen


def save_once(view: ApiView, save: Callable[[], Saved]) -> Saved:
    """What ``save`` gives, or gave before under the same ``Idempotency-Key``: then the memory as it is now.

    NotFound when that was deleted meanwhile or is no longer theirs to see.
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
    """201 for a new memory; 200 when it was updated by its key, or was known already (``duplicate``)."""
    code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
    return memory_response(saved.memory, status=code, duplicate=saved.duplicate, **more)


def change_memory(view: ApiView, memory: Memory) -> Response:
    """What a PATCH asks for, once; under If-Match only to the version that was seen."""
    changes = view.body(MemoryUpdate)
    if newer := changes.get("replaced_by"):
        changes["replaced_by"] = get_memory(view.person, newer, workspace=memory.workspace)
    seen = versions_seen(view.request)

    def edit() -> Memory:
        return gate.edit_memory(memory, by=view.person, now=timezone.now(), seen=seen, **changes)

    return memory_response(view.make_once(edit, get_memory))


def delete_memory(view: ApiView, memory: Memory) -> Response:
    gate.delete_memory(memory, by=view.person, now=timezone.now(), seen=versions_seen(view.request))
    return Response(status=status.HTTP_204_NO_CONTENT)


def _as_it_is(user: User, memory_id: str) -> Memory:
    waiting = Memory.objects.visible_to(user).filter(review=Review.PENDING, public_id=memory_id).first()
    return waiting or get_memory(user, memory_id)
