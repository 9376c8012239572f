"""Saves of a memory that a program may send twice."""

from __future__ import annotations

from collections.abc import Callable

from memories.access import get_memory
from memories.gate import Saved
from memories.models import Memory
from memories.models.memory import Review
from memoryhub.api.views import ApiView
from workspaces.models import User


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
        again=lambda note: Saved(
            _as_it_is(view.person, note["memory"]),
            created=note["created"],
            duplicate=note["duplicate"],
            pending=note.get("pending", False),
        ),
    )


def _as_it_is(user: User, memory_id: str) -> Memory:
    waiting = Memory.objects.visible_to(user).filter(review=Review.PENDING, public_id=memory_id).first()
    return waiting or get_memory(user, memory_id)
