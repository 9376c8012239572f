"""Notifications of open pages and webhooks about changed memories, with ids and counts only."""

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

# The webhook event of each action. Other actions (a new vector, a file, a waiting proposal) send none, because they
# change nothing that a webhook receiver can read.
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
    """Notify open pages and webhooks of a change, after the commit. A personal memory's event goes to its owner's pages
    only.
    """
    announce_many([memory], action)


def announce_many(memories: Sequence[Memory], action: str) -> None:
    """Send open pages one event per scope, on which they reload, and webhooks one event per memory."""
    for memory in {memory.place: memory for memory in memories}.values():
        data = {"workspace_id": memory.workspace.public_id, "action": action, "memory_id": memory.public_id}
        events.publish(_channel(memory), "memory.changed", data)
    tell_webhooks(memories, action)


def tell_webhooks(memories: Sequence[Memory], action: str) -> None:
    """Queue webhook events for memories that all members may see. Personal memories and proposals are left out."""
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
    """Return the fields of a live, shared memory for a webhook, or None if it is gone or the current rules find a
    secret in it.
    """
    found = Memory.objects.live().filter(workspace=workspace, owner=None, public_id=public_id).first()
    if found is None or (found.secret_rules != RULES and kind_in(found)):
        return None
    return {name: getattr(found, name) for name in ("content", "key", "category", "tags")}


def announce_auto_saved(memories: Sequence[Memory], *, chat_id: str) -> None:
    """Publish ``x_memory.auto_saved`` after a background save, to the open pages of people who may see the memories."""
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
    """Return the event channel of a memory. A personal memory's events go to its owner only."""
    return f"user:{memory.owner.public_id}" if memory.owner else f"workspace:{memory.workspace.public_id}"
