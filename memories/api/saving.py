"""Saves of a memory that a program may send twice."""

from __future__ import annotations

from collections.abc import Callable

from memories.access import get_memory
from memories.gate import Saved
from memoryhub.api.views import ApiView


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
        },
        again=lambda note: Saved(
            get_memory(view.person, note["memory"]), created=note["created"], duplicate=note["duplicate"]
        ),
    )
