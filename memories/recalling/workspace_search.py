"""Search over all content of a workspace, for pages, the REST API and the model's tool ``x_workspace_search``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.recalling.recall import MAX_LIMIT, Recalled, find_listed, recall
from memoryhub.database.replicas import read
from workspaces.artifacts import find_artifacts
from workspaces.data_policy import DataPolicy, is_local_elsewhere
from workspaces.documents.search import find_passages
from workspaces.models import Agent, User, Workspace

TYPES = ("memory", "document", "artifact", "message")
LIMIT = 10  # default number of results; at most MAX_LIMIT


@dataclass(frozen=True)
class PassagePosition:
    """The position of a passage in a document. ``characters`` are its start and end in the document's text."""

    page: int | None
    heading: str
    characters: tuple[int, int]


@dataclass(frozen=True)
class Found:
    """A search result of any type. A higher score is better."""

    type: str  # of TYPES
    id: str
    text: str
    score: float
    created_at: datetime
    title: str = ""  # of a document, an artifact or a message's chat
    place: PassagePosition | None = None
    number: int = 0  # of a document's passage
    chat_id: str = ""  # of a message
    workspace_id: str = ""  # of a document or an artifact
    personal: bool = False  # of a document, an artifact or a message: not everybody may see it
    stays_here: bool = False  # its text comes from another workspace that is local-only
    is_imported: bool = False  # of a memory or a message: under the name of ``written_by``
    imported_by: User | None = None
    written_by: User | None = None
    is_edited: bool = False  # of a memory: ``written_by`` changed another's words

    @property
    def edited_by(self) -> User | None:
        return self.written_by if self.is_edited else None


_finders: list[Callable[..., list[Found]]] = []


def register_messages(finder: Callable[..., list[Found]]) -> None:
    """Register the chat app's function that searches messages, which this app must not import.

    It is called with query, workspace and user, and by keyword with limit, policy and private_chats.
    """
    _finders[:] = [finder]


def search_workspace(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int = LIMIT,
    types: Sequence[str] = TYPES,
    now: datetime,
    agent: Agent | None = None,
    policy: DataPolicy,
    private_chats: bool = False,
    noted: bool = True,
    listed: bool = False,
) -> list[Found]:
    """Return memories, passages of documents, artifacts and messages that are relevant to the query, best first.

    Returns at most ``limit`` results in total, and never more than MAX_LIMIT. A blank query or a limit below 1 finds
    nothing. ``policy`` says who will read the results, and whether they leave this machine.

    Memories include those of ``agent``. With ``listed`` they are found by ``find_listed``, for lists that people
    search; otherwise ``noted`` marks them as accessed. Messages of private chats are included only with
    ``private_chats`` and a policy that permits personal data.

    Costs one recall and one search for each other type. Raises NotFound if the user is not a member.
    """
    limit, where = min(limit, MAX_LIMIT), (query, workspace, user)

    def ask() -> list[Found]:
        results = list[Found]()
        if "memory" in types:
            how: dict[str, Any] = {"limit": limit, "agent": agent, "policy": policy, "now": now}
            recalled = (
                find_listed(*where, **how) if listed else recall(*where, floor=True, noted=noted, **how).items
            )
            results += [_shown(item, workspace) for item in recalled]
        if "document" in types:
            results += _passages(*where, limit, policy)
        if "artifact" in types:
            results += _artifacts(*where, limit, policy)
        for find in _finders if "message" in types else []:
            results += find(*where, limit=limit, policy=policy, private_chats=private_chats)
        return results

    return sorted(read(user.pk, ask), key=lambda each: -each.score)[: max(0, limit)]


def _shown(item: Recalled, workspace: Workspace) -> Found:
    return Found(
        "memory",
        item.memory.public_id,
        item.memory.content,
        item.score,
        item.memory.created_at,
        stays_here=is_local_elsewhere(item.memory, workspace),
        is_imported=item.memory.is_imported,
        imported_by=item.memory.imported_by,
        written_by=item.memory.written_by,
        is_edited=item.memory.edited_at is not None,
    )


def _artifacts(query: str, workspace: Workspace, user: User, limit: int, policy: DataPolicy) -> list[Found]:
    return [
        Found(
            "artifact",
            each.artifact.public_id,
            each.excerpt,
            each.score,
            each.artifact.created_at,
            each.artifact.title,
            workspace_id=each.artifact.workspace.public_id,
            personal=each.artifact.is_personal,
            stays_here=is_local_elsewhere(each.artifact, workspace),
        )
        for each in find_artifacts(query, workspace, user, limit=limit, policy=policy)
    ]


def _passages(query: str, workspace: Workspace, user: User, limit: int, policy: DataPolicy) -> list[Found]:
    results = []
    for each in find_passages(query, workspace, user, limit=limit, policy=policy):
        passage, document = each.passage, each.passage.document
        ends = passage.begins + len(passage.text)
        place = PassagePosition(passage.page or None, passage.heading, (passage.begins, ends))
        results.append(
            Found(
                "document",
                document.public_id,
                passage.text.strip(),
                each.score,
                document.created_at,
                document.title,
                place,
                passage.number,
                workspace_id=document.workspace.public_id,
                personal=document.is_personal,
                stays_here=is_local_elsewhere(document, workspace),
            )
        )
    return results
