"""The one search over what a workspace holds. The REST route and the model's ``x_workspace_search`` ask here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memories.recalling.recall import recall
from workspaces.leaving_machine import Reach
from workspaces.models import Agent, User, Workspace

TYPES = ("memory", "document", "artifact")
SEARCHED = ("memories",)  # what is looked through by now: what the model is promised
LIMIT = 10  # unless the caller says another; recall's cap of 50 holds here too


@dataclass(frozen=True)
class Found:
    """One thing that was found: its public id, its text, and how well it matched (higher is better)."""

    type: str  # of TYPES
    id: str
    text: str
    score: float
    created_at: datetime


def search_workspace(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int = LIMIT,
    now: datetime,
    agent: Agent | None = None,
    reach: Reach,
) -> list[Found]:
    """What matters to the query, best first: today the memories, by the hybrid ranking, the asker's own among them
    where ``reach`` allows it, and in a chat with an assistant what that one remembers. What is said in chats is not
    searched. A blank query or a limit below 1 finds nothing.

    Costs one recall. NotFound for a stranger.
    """
    found = recall(query, workspace, user, limit=limit, now=now, agent=agent, reach=reach)
    return [
        Found("memory", item.memory.public_id, item.memory.content, item.score, item.memory.created_at)
        for item in found.items
    ]
