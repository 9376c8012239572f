"""The interface of models for the rest of the code: plain messages as input, plain text or vectors as output."""

import ipaddress
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memoryhub.llm.errors import EmbedderBadReply

# A conservative estimate for English. Scripts with two or three bytes per letter take more tokens.
BYTES_PER_TOKEN = 3.2
Role = Literal["system", "user", "assistant", "tool"]
Vectors = NDArray[np.float32]
# Key that marks a system message which we insert among an API client's messages. If the chat template allows no system
# message at that position, its text is merged into the next message.
INSERTED = "_inserted"


ToolChoice = Literal["auto", "none"]


def estimated_tokens(*texts: str) -> int:
    """Estimate the tokens of texts by their length, since each model has another tokenizer."""
    return sum(int(len(text.encode(errors="replace")) / BYTES_PER_TOKEN) + 4 for text in texts)


def is_on_this_machine(url: str) -> bool:
    """Return whether the host of a URL is a loopback address or a name for one. Does not resolve names."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Speaker(StrEnum):
    """Author of a text in a prompt. Only a person's own words become a memory without review."""

    PERSON = "person"  # a member of the workspace, in this conversation
    IMPORT = "import"  # imported words of another person
    MODEL = "model"  # the model itself: earlier answers, plans, summaries of this conversation
    SYSTEM = "system"  # our own prompts, which contain no facts about people
    ASSISTANT = "assistant"  # the instructions of a named assistant
    MEMORY = "memory"
    DOCUMENT = "document"
    ARTIFACT = "artifact"
    CHAT = "chat"  # another chat's summary, or a message of it that a search returned
    TOOL = "tool"  # a tool's report about its own work
    WEB = "web"
    RUN = "run"  # a run's plan, inputs, results and messages between its steps
    PROGRAM = "program"  # an API client's instructions, tools, and messages as the model's answers


@dataclass(frozen=True)
class Tool:
    """A tool that is offered to a model. `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @cached_property
    def tokens(self) -> int:
        """Estimate the tokens that the tool takes in a prompt: name, description and parameters."""
        return estimated_tokens(self.name + self.description + json.dumps(dict(self.parameters)))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by a model. `arguments` is the JSON text exactly as the model wrote it, so it may be invalid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a message. `label` is its description for the model; without `jpeg` only the label is sent."""

    label: str
    jpeg: bytes = field(default=b"", repr=False)
    width: int = 0
    height: int = 0

    @property
    def tokens(self) -> int:
        """Estimate the picture's tokens: one for each 750 pixels, as providers document."""
        return self.width * self.height // 750 + 16 if self.jpeg else 16


@dataclass(frozen=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()  # calls that an assistant message makes
    tool_call_id: str | None = None  # id of the call that a tool message answers
    pictures: tuple[Picture, ...] = ()  # only in user messages; a model without vision gets their labels
    speaker: Speaker | None = None  # set on every message of a turn or run

    @cached_property
    def tokens(self) -> int:
        """Estimate the tokens of the content, without calls and pictures."""
        return estimated_tokens(self.content)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities and limits of a model, stored as data, because a model's name does not show them."""

    has_tools: bool
    can_extract: bool
    context_tokens: int  # limit of prompt and answer together
    local: bool  # whether the model runs on this machine, so that texts do not leave it
    answer_tokens: int | None = None  # limit of an answer; None means the setting LLM_MAX_TOKENS
    history_tokens: int | None = None  # limit of the conversation; None means LLM_HISTORY_TOKENS
    sees: bool | None = None  # whether the model accepts pictures; None means unknown until one is sent
    answers_well: bool | None = None  # whether the page may suggest questions; None means `can_extract`
    needs_help: bool = False  # it is so small that a memory may replace its answer, and repetition is cut
    writes_on: bool = False  # whether the model continues its own last message


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer. The last piece has the finish reason and all tool calls."""

    text: str
    finish_reason: str | None = None  # "stop", "tool_calls", or "length" if max_tokens cut the answer off
    tool_calls: tuple[ToolCall, ...] = ()  # with any finish reason
    thought: str = ""  # hidden reasoning, never part of the answer
    retracts: bool = False  # all text so far was reasoning, which `thought` repeats


class RawModel(Protocol):
    """The model's own API, for requests that are passed through unchanged. Both methods raise ModelError on failure."""

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request without streaming. Blocks."""

    def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the chunks of a streamed answer. Close it to stop the model."""


class ChatModel(Protocol):
    capabilities: Capabilities
    sees: bool | None  # whether it accepts pictures, as configured or learned; None if unknown

    @property
    def name(self) -> str: ...

    def detect_vision(self) -> None:
        """Set ``sees`` from the server's list of models if it is unknown. Requests the list once, for at most 2 s."""

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
        """Stream an answer piece by piece. Raises a ModelError if the call fails, possibly in the middle of an answer.

        With `tool_choice` "none" the `tools` are sent, because some endpoints need those that earlier messages called,
        but may not be called. A model without tool support is called without them. `timeout` limits the seconds of
        silence before each piece; None means the configured timeout. Closing the generator stops the model. After a
        plain `break` that takes a garbage collection, so callers that may stop early use `contextlib.aclosing(...)`.
        """

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        json: bool = False,
    ) -> str:
        """Return the whole answer. Blocks the thread, so it is for workers. Raises a ModelError if the call fails.

        `json` asks the server to enforce a JSON object if it can; the caller must still validate the answer.
        """


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Return the model's name, which is stored with each vector. Vectors of different names are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, in order: float32 of shape (n, dimension), of length 1. Blocks; thread-safe.

        Raises an EmbedderError on any failure, also when the model returns a wrong number or size of vectors, NaN,
        infinity or a zero vector. Without texts the array has no rows.
        """

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text. The first text is a question, the others are shorter variants of it."""


def normalised(rows: ArrayLike, *, count: int) -> Vectors:
    """Return `rows` as float32 unit vectors.

    Raises EmbedderBadReply unless they are `count` finite, non-zero vectors of one size.
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
