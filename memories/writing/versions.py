"""Versions of memories, which prevent two editors from overwriting each other's changes unnoticed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext_lazy as later

from memories.models import Memory
from memoryhub.errors import Conflict

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


class Stale(Conflict):
    """The error that the memory has changed since its editor loaded it. ``memory`` is its current state."""

    code = "stale"
    default_message = later(
        "Someone else has changed this memory since you loaded it. Load it again, then decide."
    )

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def headers(self) -> dict[str, str]:
        return {"ETag": etag(self.memory)}


def version_of(memory: Memory) -> str:
    """Return the version, which changes with every edit, delete and restore, but not by recall, embedding or links."""
    return f"{memory.public_id}-{(memory.updated_at - EPOCH) // TICK:x}"


def etag(memory: Memory) -> str:
    """Return the version as the ``ETag`` header, the same in every API."""
    return f'"{version_of(memory)}"'


def next_update(memory: Memory, now: datetime) -> datetime:
    """Return a locked memory's next ``updated_at``.

    It is always later than the last one, even if the clock was set back, so that no version repeats.
    """
    return max(now, memory.updated_at + TICK)


def require_version(memory: Memory, seen: Collection[str] | None) -> None:
    """Raise Stale unless the locked memory has one of the versions ``seen``. None allows any."""
    if seen is not None and version_of(memory) not in seen:
        raise Stale(memory)
