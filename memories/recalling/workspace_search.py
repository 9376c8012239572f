"""The one search over what a workspace holds. The REST route and the model's ``x_workspace_search`` ask here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.recalling.recall import MAX_LIMIT, recall
from workspaces.documents.finding import find_passages
from workspaces.leaving_machine import Reach
from workspaces.models import Agent, User, Workspace

TYPES = ("memory", "document", "artifact")
SEARCHED = ("memories", "documents")  # what is looked through by now: what the model is promised
LIMIT = 10  # unless the caller says another; recall's cap of 50 holds here too


@dataclass(frozen=True)
class Place:
    """Where in a document it stands. ``characters``: from and to, of the document's text."""

    page: int | None
    heading: str
    characters: tuple[int, int]


@dataclass(frozen=True)
class Found:
    """One thing that was found: its public id, its text, and how well it matched (higher is better)."""

    type: str  # of TYPES
    id: str
    text: str
    score: float
    created_at: datetime
    title: str = ""  # of a document
    place: Place | None = None


def search_workspace(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int = LIMIT,
    types: Sequence[str] = TYPES,
    now: datetime,
    agent: Agent | None = None,
    reach: Reach,
) -> list[Found]:
    """What matters to the query, best first: memories by the hybrid ranking, the asker's own among them where
    ``reach`` allows it, in a chat with an assistant what that one remembers, and passages of documents, whose scores
    are made on the same scale. What is said in chats is not searched. A blank query or a limit below 1 finds nothing.

    Costs one recall and one search of documents. NotFound for a stranger.
    """
    limit = min(limit, MAX_LIMIT)
    found: list[Found] = []
    if "memory" in types:
        recalled = recall(query, workspace, user, limit=limit, floor=True, now=now, agent=agent, reach=reach)
        found += [
            Found("memory", item.memory.public_id, item.memory.content, item.score, item.memory.created_at)
            for item in recalled.items
        ]
    if "document" in types:
        for each in find_passages(query, workspace, user, limit=limit, reach=reach):
            passage, document = each.passage, each.passage.document
            text = passage.text.strip()
            place = Place(
                passage.page or None, passage.heading, (passage.begins, passage.begins + len(passage.text))
            )
            found.append(
                Found(
                    "document",
                    document.public_id,
                    text,
                    each.score,
                    document.created_at,
                    document.title,
                    place,
                )
            )
    return sorted(found, key=lambda each: -each.score)[: max(0, limit)]
