"""Validation of replies of OpenAI-compatible servers, because the OpenAI library builds its objects from any JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memoryhub.llm.base import ToolCall
from memoryhub.llm.errors import (
    EMPTY,
    ONLY_THOUGHTS,
    ContentFiltered,
    EmbedderBadReply,
    ModelBadReply,
    ModelCut,
)
from memoryhub.llm.metering import BYTES_PER_TOKEN, Usage, usage_said

if TYPE_CHECKING:
    from memoryhub.llm.chat_chunks import Chunk  # its module loads openai, which takes a second

MOST_CALLS = 64  # per reply
MOST_ARGUMENTS = 200_000  # limit of one call's arguments, in characters
MOST_TEXT = 1_000_000  # limit of one answer, in characters
FENCED = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
THOUGHT_FIELDS = ("reasoning_content", "reasoning")  # DeepSeek, vLLM, llama.cpp; OpenRouter, Ollama


class StreamedAnswer:
    """A streamed answer as far as it has been read."""

    def __init__(self) -> None:
        self.has_begun = False
        self.has_text = self.has_thought = False
        self.thought = ""  # reasoning in the last chunk, if the server sends it separately from the text
        self.finish_reason: str | None = None
        self.usage: Usage | None = None  # as the server reports it, at the end or with each chunk
        self._calls: list[_CallSoFar] = []
        self._length = 0

    def read(self, chunk: Chunk) -> str:
        """Read a chunk and return its text; empty for a chunk without choices, such as one with the usage.

        Raises ModelBadReply if the chunk is invalid or the answer too long, ContentFiltered if the model refuses.
        """
        self.thought = ""
        self.usage = usage_said(chunk.get("usage")) or self.usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        self.has_begun = True
        delta = choices[0].get("delta") or {} if isinstance(choices[0], dict) else None
        if not isinstance(delta, dict):
            raise ModelBadReply(detail=f"a chunk without a delta: {str(chunk)[:100]}")
        text = delta.get("content") or ""
        if not isinstance(text, str):
            raise ModelBadReply(detail=f"content is {type(text).__name__}")
        if delta.get("refusal"):
            raise ContentFiltered(detail=str(delta["refusal"]))
        thought = next(filter(None, (delta.get(name) for name in THOUGHT_FIELDS)), "")
        self.thought = thought if isinstance(thought, str) else ""
        for fragment in _as_list(delta.get("tool_calls")):
            self._read_call(fragment)
        self.finish_reason = choices[0].get("finish_reason") or self.finish_reason
        self.has_thought = self.has_thought or bool(self.thought)
        self.has_text = self.has_text or bool(text)
        self._length += len(text) + len(self.thought)
        if self._length > MOST_TEXT:
            raise ModelBadReply(detail="an answer without end")
        return text

    @property
    def written(self) -> int:
        """Return the estimated tokens of the text, reasoning and tool calls so far."""
        return int((self._length + sum(len(call.arguments) for call in self._calls)) / BYTES_PER_TOKEN)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls read so far. Their arguments are as the model wrote them and may be invalid JSON."""
        return tuple(
            ToolCall(call.id or f"call_{number}", call.name, _plain_arguments(call.arguments))
            for number, call in enumerate(self._calls, start=1)
        )

    def take_call(self, call: ToolCall) -> None:
        """Add a tool call that the model wrote as text."""
        self._calls.append(_CallSoFar(None, call.id, call.name, call.arguments))
        self.finish_reason = "tool_calls"

    def _read_call(self, fragment: Any) -> None:
        """Add a fragment of a tool call: its id, index, (part of) its name, or part of its arguments, in any order.

        Servers that send complete calls give all of them index 0, or none; others number the fragments of one call. So
        fragments are matched first by id, then by index, then to the last incomplete call.
        """
        function = fragment.get("function") if isinstance(fragment, dict) else None
        function = function if isinstance(function, dict) else {}
        name, part = function.get("name") or "", function.get("arguments") or ""
        if isinstance(part, dict):
            part = json.dumps(part)
        if not isinstance(name, str) or not isinstance(part, str):
            raise ModelBadReply(detail=f"a tool call whose arguments are {type(part).__name__}")
        call = self._call_of(fragment if isinstance(fragment, dict) else {}, name)
        if name != call.name:
            call.name += name
        call.arguments += part
        if len(call.arguments) > MOST_ARGUMENTS:
            raise ModelBadReply(detail="a tool call with arguments without end")

    def _call_of(self, fragment: dict[str, Any], name: str) -> _CallSoFar:
        """Return the call that a fragment belongs to, or a new one. Raises ModelBadReply above MOST_CALLS calls."""
        index, call_id = fragment.get("index"), str(fragment.get("id") or "")[:200]
        same = [call for call in self._calls if call_id and call.id == call_id]
        same = same or [call for call in self._calls if index is not None and call.index == index]
        call = same[-1] if same else self._calls[-1] if self._calls and (index is None or not name) else None
        is_other = call is not None and (
            (call_id and call.id and call_id != call.id)
            or (name and call.name and _is_json(call.arguments))
            or (name and call.name and call.arguments and name != call.name)
        )
        if call is None or is_other:
            if len(self._calls) >= MOST_CALLS:
                raise ModelBadReply(detail="more tool calls than anybody needs")
            call = _CallSoFar(index, call_id, "")
            self._calls.append(call)
        call.id = call.id or call_id
        return call

    def finish(self) -> str:
        """Return the finish reason after the end of the stream.

        Raises ModelCut if the stream ended without one, ContentFiltered if the answer was filtered, and ModelBadReply
        if it is empty or consists only of reasoning.
        """
        if not self.has_begun:
            raise ModelBadReply(detail="the reply was no stream of events")
        if self.finish_reason is None:
            raise ModelCut(detail="the stream ended without a finish_reason")
        if self.finish_reason == "length" and self.has_thought and not self.has_text and not self._calls:
            raise ModelBadReply(ONLY_THOUGHTS, detail="the limit was reached while thinking")
        _check_end(self.finish_reason, self.has_text or bool(self._calls))
        return self.finish_reason


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _plain_arguments(text: str) -> str:
    """Return arguments without the code fence or second JSON encoding that some models add."""
    plain = FENCED.sub(r"\1", text.strip())
    for _ in range(2):
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return text
        if not isinstance(value, str):
            return plain
        plain = FENCED.sub(r"\1", value.strip())
    return text


@dataclass
class _CallSoFar:
    index: int | None
    id: str
    name: str
    arguments: str = ""


def _check_end(finish_reason: str | None, has_text: bool) -> None:
    if finish_reason == "content_filter":
        raise ContentFiltered()
    if not has_text:
        raise ModelBadReply(EMPTY, detail=f"no text, finish_reason {finish_reason}")


def whole_text(reply: Chunk) -> str:
    """Return the text of an unstreamed completion.

    Raises ContentFiltered if it was filtered or refused, ModelBadReply if it is invalid, empty or only reasoning.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ModelBadReply(detail=f"no chat completion: {str(reply)[:200]}")
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise ModelBadReply(detail=f"content is {type(text).__name__}")
    if message.get("refusal"):
        raise ContentFiltered(detail=str(message["refusal"]))
    if choice.get("finish_reason") == "length" and not text and any(map(message.get, THOUGHT_FIELDS)):
        raise ModelBadReply(ONLY_THOUGHTS, detail="the limit was reached while thinking")
    _check_end(choice.get("finish_reason"), bool(text))
    return text


def vectors_in_order(reply: Any, count: int) -> list[list[float]]:
    """Return a reply's vectors in the order of the texts, because servers may reorder them.

    Raises EmbedderBadReply unless there is exactly one vector for each of the ``count`` texts.
    """
    try:
        by_index = {item.index: item.embedding for item in reply.data}
        returned = len(reply.data)
    except (AttributeError, TypeError) as error:
        raise EmbedderBadReply(detail=f"no embeddings: {str(reply)[:200]}") from error
    if returned != count or set(by_index) != set(range(count)):
        raise EmbedderBadReply(detail=f"{returned} vectors for {count} texts, or numbered wrongly")
    return [by_index[index] for index in range(count)]
