"""Types of requests and responses, as in the OpenAPI schema. tests/client/test_schema.py compares them.

Times are strings, ISO 8601 in UTC. Responses may have fields that these types lack, and may gain more.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, NotRequired, Required, TypedDict, TypeVar

T = TypeVar("T")
Scope = Literal["workspace", "user", "agent"]
Ranking = Literal["hybrid", "semantic", "longterm", "lexical"]
FoundType = Literal["memory", "document", "artifact", "message"]


class Page(TypedDict, Generic[T]):
    items: list[T]
    next_cursor: str | None
    has_more: bool


class Person(TypedDict):
    id: str
    username: str


class Workspace(TypedDict):
    id: str
    name: str
    description: str
    role: Literal["owner", "editor", "viewer"]
    is_default: bool
    local_only: bool
    connection_id: str | None
    member_count: int
    memory_count: int
    created_at: str
    updated_at: str


class MemoryFields(TypedDict, total=False):
    """Fields of a new or changed memory. ``confirm`` stores it although it contains a personal number."""

    category: str | None
    key: str | None
    tags: list[str]
    importance: float
    pinned: bool
    expires_at: str | None
    valid_from: str | None
    valid_to: str | None
    confirm: bool


class MemoryChanges(MemoryFields, total=False):
    content: str
    replaced_by: str | None


class NewMemory(MemoryFields, total=False):
    """A memory to save. A live memory with the same ``key`` is updated, unless ``dedupe`` is ``"create"``."""

    content: Required[str]
    scope: Scope
    agent_id: str | None
    dedupe: Literal["key", "create"]


class RestsOn(TypedDict):
    speaker: str
    id: str | None


class Memory(TypedDict):
    id: str
    workspace_id: str
    content: str
    summary: str | None
    category: str | None
    key: str | None
    tags: list[str]
    importance: float
    pinned: bool
    expires_at: str | None
    valid_from: str | None
    valid_to: str | None
    replaced_by: NotRequired[str | None]
    scope: Scope
    agent_id: NotRequired[str | None]
    source_type: str
    source_chat_id: str | None
    source_message_id: str | None
    rests_on: RestsOn | None
    author: Person | None
    edited_by: Person | None
    imported: bool
    imported_by: Person | None
    may_replace: str | None
    searchable: bool
    created_at: str
    updated_at: str
    last_accessed_at: str | None


class SavedMemory(Memory):
    """A saved memory. ``duplicate`` is true if it was already known, so that nothing was stored."""

    duplicate: bool


class RestoredMemory(Memory):
    """A restored memory. ``lost_key`` is its former key, if another memory has that key now."""

    lost_key: str | None


class RecalledMemory(Memory):
    score: float
    score_parts: dict[str, float]


class RecallOptions(TypedDict, total=False):
    limit: int
    offset: int
    ranking: Ranking
    threshold: float | None
    as_of: str | None
    agent_id: str | None


class Recall(TypedDict):
    """Recalled memories. ``degraded`` is true if the search by meaning failed and only words were compared."""

    memories: list[RecalledMemory]
    ranking: Ranking
    degraded: bool
    degraded_reason: str | None


class RecallCheck(TypedDict):
    found: int
    others: int


class Forgotten(TypedDict):
    """Numbers of removed rows, and of memories that a recall of the same words still finds."""

    removed: dict[str, int]
    tombstones: int
    recall: RecallCheck


class Found(TypedDict):
    type: FoundType
    id: str
    text: str
    title: str
    score: float
    created_at: str
    chat_id: str | None
    author: Person | None
    edited_by: Person | None
    imported: bool
    imported_by: Person | None


class Results(TypedDict):
    results: list[Found]


class NewChat(TypedDict, total=False):
    """A chat to create. Without ``workspace_id`` it belongs to your own workspace."""

    title: str
    workspace_id: str
    agent_id: str | None
    connection_id: str | None
    memory_enabled: bool | None
    use_personal_memories: bool
    is_private: bool
    is_temporary: bool


class Chat(TypedDict):
    id: str
    workspace_id: str
    title: str
    agent_id: NotRequired[str | None]
    connection_id: str | None
    memory_enabled: bool | None
    is_private: bool
    is_temporary: bool
    created_by: Person
    imported: bool
    created_at: str
    updated_at: str


class MessageOptions(TypedDict, total=False):
    """Options of a message. ``documents`` are the ids of the documents that the answer may use; ``[]`` means none."""

    memory_enabled: bool
    documents: list[str] | None
    mode: Literal["chat", "deep_think", "research"]


class MessageError(TypedDict):
    code: str
    message: str


class AnswerSource(TypedDict):
    number: int
    document_id: str
    title: str
    page: int
    heading: str
    score: float


class Usage(TypedDict):
    """Tokens of an answer and their cost.

    ``memory``, ``documents`` and ``tools`` are estimated parts of ``tokens_in``. ``estimated`` is the number of calls
    whose provider reported no usage, ``unpriced`` the number of calls that are not in ``cost``.
    """

    tokens_in: int
    cached: int
    tokens_out: int
    reasoning: int
    calls: int
    estimated: int
    memory: int
    documents: int
    tools: int
    unpriced: int
    cost: str | None


class Message(TypedDict):
    id: str
    role: str
    content: str
    status: Literal["streaming", "done", "stopped", "failed"]
    author: Person | None
    imported: bool
    imported_by: Person | None
    reply_to: str | None
    model: str
    memory_enabled: bool
    error: MessageError | None
    sources: list[AnswerSource]
    mode: str
    usage: Usage | None
    created_at: str
    finished_at: str | None


class Turn(TypedDict):
    message: Message
    answer: Message


class Event(TypedDict):
    """An event of a streamed answer. ``data`` is parsed JSON. Ignore events with unknown names."""

    event: str
    data: Any


class Document(TypedDict):
    id: str
    workspace_id: str
    title: str
    media_type: str
    size: int
    sha256: str
    version: int
    status: Literal["waiting", "reading", "indexing", "ready", "failed"]
    found_by_meaning: float | None
    error: str
    pages: int
    passages: int
    characters: int
    personal: bool
    draft: bool
    created_by: Person | None
    created_at: str
    updated_at: str


class BroughtDocument(Document):
    duplicate: bool


class NewKey(TypedDict, total=False):
    name: Required[str]
    workspace_id: Required[str]
    scope: Literal["read", "write"]
    expires_at: str | None


class Key(TypedDict):
    id: str
    name: str
    beginning: str
    workspace_id: str
    scope: Literal["read", "write"]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    calls: int


class MadeKey(Key):
    """A new API key. ``key`` is its secret, which is never shown again."""

    key: str
