"""Telling open pages what became of memories, in ids and numbers only."""

from __future__ import annotations

from collections.abc import Sequence

from memories.models import Memory
from memoryhub import events


def announce(memory: Memory, action: str) -> None:
    """Tell open pages after the commit. Personal memories concern their owner's pages alone."""
    data = {"workspace_id": memory.workspace.public_id, "action": action, "memory_id": memory.public_id}
    events.publish(_channel(memory), "memory.changed", data)


def announce_auto_saved(memories: Sequence[Memory], *, chat_id: str) -> None:
    """``x_memory.auto_saved`` to the open pages that may see them, when a background save landed."""
    if not memories:
        return
    first = memories[0]
    data = {
        "workspace_id": first.workspace.public_id,
        "chat_id": chat_id,
        "source_type": first.source_type,
        "memory_ids": [memory.public_id for memory in memories],
        "count": len(memories),
    }
    events.publish(_channel(first), "x_memory.auto_saved", data)


def _channel(memory: Memory) -> str:
    """Personal memories concern their owner's pages alone."""
    return f"user:{memory.owner.public_id}" if memory.owner else f"workspace:{memory.workspace.public_id}"
