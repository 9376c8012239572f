"""Versions of memories, so that two editors cannot overwrite each other unseen."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext_lazy as later

from memories.models import Memory
from memoryhub.errors import Conflict

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


class Stale(Conflict):
    """The memory is not as its editor has seen it; ``memory`` is as it stands now."""

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
    """Another one after every edit, delete and restore. Being recalled, embedded or linked changes none."""
    return f"{memory.public_id}-{(memory.updated_at - EPOCH) // TICK:x}"


def etag(memory: Memory) -> str:
    """Return the version as the ``ETag`` header has it, the same in every API."""
    return f'"{version_of(memory)}"'


def next_update(memory: Memory, now: datetime) -> datetime:
    """Return a locked memory's next ``updated_at``: always later than the last, even if the clock went back, so that no
    version returns.
    """
    return max(now, memory.updated_at + TICK)


def require_version(memory: Memory, seen: Collection[str] | None) -> None:
    """Raise Stale unless the locked memory has one of the versions ``seen``. None allows any."""
    if seen is not None and version_of(memory) not in seen:
        raise Stale(memory)
