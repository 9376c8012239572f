"""Which state of a memory somebody has seen, so that two editors cannot overwrite each other unseen."""

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
    """The version as the header ``ETag`` has it, the same at every door."""
    return f'"{version_of(memory)}"'


def next_update(memory: Memory, now: datetime) -> datetime:
    """What a locked memory's ``updated_at`` becomes: later than it was, whatever clocks say, so no version returns."""
    return max(now, memory.updated_at + TICK)


def require_version(memory: Memory, seen: Collection[str] | None) -> None:
    """Raises Stale unless the locked memory is still in one of the versions seen. None: whatever it is."""
    if seen is not None and version_of(memory) not in seen:
        raise Stale(memory)
