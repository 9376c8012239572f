"""The interface of models for the rest of the code: plain messages in, plain text or vectors out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memoryhub.llm.errors import EmbedderBadReply

Role = Literal["system", "user", "assistant", "tool"]
Vectors = NDArray[np.float32]
# A system message of ours among a program's: for a chat template that takes none there, it is put into the message
# that it stands before.
INSERTED = "_inserted"


ToolChoice = Literal["auto", "none"]


class Speaker(StrEnum):
    """Author of a text that is put before a model. Only a person's own words become a memory without review."""

    PERSON = "person"
    """A member of the workspace, in this conversation."""
    IMPORT = "import"
    """Words that somebody imported under another person's name."""
    MODEL = "model"
    """The model itself: earlier answers, plans, summaries of this conversation."""
    SYSTEM = "system"
    """Our own prompts, which say nothing of anybody."""
    ASSISTANT = "assistant"
    """The instructions of a named assistant."""
    MEMORY = "memory"
    DOCUMENT = "document"
    ARTIFACT = "artifact"
    CHAT = "chat"
    """Another chat: its summary, or a message that was found."""
    TOOL = "tool"
    """What a tool says of its own work."""
    WEB = "web"
    RUN = "run"
    """A run's plan, inputs, results and messages between its steps."""
    PROGRAM = "program"
    """A program that uses our API: its instructions, its tools, and answers that it may have made up."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may ask to have done. `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by a model; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a message shows. `label` is text for the model; without `jpeg` it is named and not shown."""

    label: str
    jpeg: bytes = field(default=b"", repr=False)
    width: int = 0
    height: int = 0

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of a picture: one for 750 pixels, as providers state."""
        return self.width * self.height // 750 + 16 if self.jpeg else 16


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls an assistant message made."""
    tool_call_id: str | None = None
    """The call a tool message answers."""
    pictures: tuple[Picture, ...] = ()
    """Of a user message. A model that does not see is told their names."""
    speaker: Speaker | None = None
    """Whose words they are; everything in a turn or a run has one (tests/chat/turns/test_provenance_routes.py)."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities and limits of a model, as data: never guess them from its name."""

    has_tools: bool
    can_extract: bool
    context_tokens: int
    """Room for prompt and answer together."""
    local: bool
    """True when the model runs on this machine, so that nothing a person writes leaves it."""
    answer_tokens: int | None = None
    """The longest answer; None: the settings' LLM_MAX_TOKENS."""
    history_tokens: int | None = None
    """How much of a conversation it is shown at most; None: the settings' LLM_HISTORY_TOKENS."""
    sees: bool | None = None
    """Whether it takes pictures; None: nobody knows until one is sent."""
    answers_well: bool | None = None
    """Whether the page may propose questions to it; None: if it can extract."""
    needs_help: bool = False
    """Whether it is so small that a memory that answers the question is the answer, and loops are cut."""
    writes_on: bool = False
    """Whether it writes on where a conversation ends with words of its own. Others answer anew, or refuse."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of a streamed answer.

    The last one carries `finish_reason` ("stop", "length" where max_tokens cut the answer, or "tool_calls") and
    may have no text. Calls come whole, all of them with the last one, with any reason the server names.

    `thought` is what a reasoning model works out for itself, never a part of the answer. `retracts` says that all of
    this reply's text so far was such, and stands in `thought` now.
    """

    text: str
    finish_reason: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    retracts: bool = False


class RawModel(Protocol):
    """A model's own API, for bodies that are passed on as they are. Both methods raise a ModelError."""

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request that is not streamed. Blocks."""
        ...

    def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the chunks of a streamed answer. Close it to stop the model."""
        ...


class ChatModel(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def sees(self) -> bool | None:
        """Return its capability for pictures, or the result of sending it one since; None if unknown."""
        ...

    def find_sight(self) -> None:
        """Look in the server's list of models once if the capability is unknown; two seconds at most."""
        ...

    @property
    def raw(self) -> RawModel: ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
    ) -> AsyncGenerator[Delta, None]:
        """Answer piece by piece; raises a ModelError, also in the middle of an answer.

        `tools` are what the model may call, with "none" as choice what it might but may not now: some endpoints
        need the definitions of tools that earlier messages called. A model without tools is called without them.

        `timeout` is the longest silence in seconds before the first or between two pieces, not a total; None
        takes the configured one. The connection closes, and the model stops working, when the generator is
        cancelled or closed. A plain `break` closes nothing until the garbage collector comes by: a consumer
        that may stop early wraps the call in `contextlib.aclosing(...)`.
        """
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        json: bool = False,
    ) -> str:
        """The whole answer at once, for workers: blocks the calling thread. Raises a ModelError.

        `json` asks the server to hold the model to a JSON object where it can; the caller still validates.
        """
        ...


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Identifies the model beside every stored vector: vectors of different names are never compared."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, in order: float32 of shape (n, dimension), of length 1. Blocks; thread-safe.

        Raises an EmbedderError on any failure, also when the model returns a wrong number or size of vectors,
        NaN, infinity or a zero vector. No texts give an array with no rows.
        """
        ...


def embed_question(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of a question and of its gist, if it has one, by the embedder's own method for questions if it
    has one.
    """
    found: Vectors = getattr(embedder, "embed_question", embedder.embed)(texts)
    return found


# The check every embedder's output passes before anyone sees it.


def normalised(rows: ArrayLike, *, count: int) -> Vectors:
    """Return `rows` as float32 unit vectors. Raises EmbedderBadReply unless they are `count` usable vectors of one
    size.
    """
    try:
        vectors = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EmbedderBadReply(detail=f"not a table of numbers: {error}") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] == 0:
        raise EmbedderBadReply(detail=f"expected {count} vectors, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise EmbedderBadReply(detail="a vector contains NaN or infinity")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths < 1e-12).any():
        raise EmbedderBadReply(detail="a vector has no direction (its length is zero or infinite)")
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit
