"""Telling open pages and webhooks what became of memories, in ids and numbers only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from memories.judging.secret_filter import RULES
from memories.models import Memory, Review
from memories.writing.drafts import kind_in
from memoryhub import events
from workspaces.models import WebhookEvent, Workspace
from workspaces.webhooks.hooks import emit

# What a webhook hears of; the rest (a vector, a file, a proposal that waits) changes nothing that it could read.
_TOLD = {
    "create": WebhookEvent.MEMORY_SAVED,
    "approve": WebhookEvent.MEMORY_SAVED,
    "restore": WebhookEvent.MEMORY_SAVED,
    "edit": WebhookEvent.MEMORY_CHANGED,
    "delete": WebhookEvent.MEMORY_FORGOTTEN,
    "forget": WebhookEvent.MEMORY_FORGOTTEN,
    "reconsider": WebhookEvent.MEMORY_FORGOTTEN,
}


def announce(memory: Memory, action: str) -> None:
    """Tell open pages after the commit. Personal memories concern their owner's pages alone."""
    announce_many([memory], action)


def announce_many(memories: Sequence[Memory], action: str) -> None:
    """To pages one event a place, which look again; to webhooks one a memory."""
    for memory in {memory.place: memory for memory in memories}.values():
        data = {"workspace_id": memory.workspace.public_id, "action": action, "memory_id": memory.public_id}
        events.publish(_channel(memory), "memory.changed", data)
    tell_webhooks(memories, action)


def tell_webhooks(memories: Sequence[Memory], action: str) -> None:
    """Queue webhook events for memories that all members may see: never personal ones or proposals."""
    if action not in _TOLD:
        return
    event, by_workspace = _TOLD[action], defaultdict[int, list[str]](list)
    for memory in memories:
        is_there = memory.deleted_at is None or event == WebhookEvent.MEMORY_FORGOTTEN
        if memory.owner_id is None and memory.review == Review.NONE and is_there:
            by_workspace[memory.workspace_id].append(memory.public_id)
    for workspace_id, ids in by_workspace.items():
        emit(workspace_id, event, ids, action=action)


def text_for_webhook(workspace: Workspace, public_id: str) -> Mapping[str, Any] | None:
    """Return a live, shared memory's fields for a webhook; None if it is gone or today's rules refuse it."""
    found = Memory.objects.live().filter(workspace=workspace, owner=None, public_id=public_id).first()
    if found is None or (found.secret_rules != RULES and kind_in(found)):
        return None
    return {name: getattr(found, name) for name in ("content", "key", "category", "tags")}


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
