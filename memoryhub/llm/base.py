"""What the rest of the code knows about models: plain messages in, plain text or vectors out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Role = Literal["system", "user", "assistant", "tool"]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls an assistant message made."""
    tool_call_id: str | None = None
    """The call a tool message answers."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can be asked to do. They are data: nothing may guess them from a model's name."""

    has_tools: bool
    can_extract: bool
    context_tokens: int
    """Room for prompt and answer together."""
    local: bool
    """True when the model runs on this machine, so that nothing a person writes leaves it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of a streamed answer.

    The last one carries `finish_reason` ("stop", or "length" where max_tokens cut the answer) and may have
    no text.
    """

    text: str
    finish_reason: str | None = None


class ChatModel(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[Delta, None]:
        """Answer piece by piece; raises a ModelError, also in the middle of an answer.

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
        """One vector a text, in order: float32 of shape (n, dimension), of length 1. Blocks; thread-safe.

        Raises an EmbedderError on any failure, also when the model returns a wrong number or size of vectors,
        NaN, infinity or a zero vector. No texts give an array with no rows.
        """
        ...
