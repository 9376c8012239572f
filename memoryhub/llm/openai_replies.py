"""Reading replies. The library builds its objects from any JSON without looking, so this looks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memoryhub.llm.base import ToolCall
from memoryhub.llm.errors import EMPTY, ContentFiltered, EmbedderBadReply, ModelBadReply, ModelCut
from memoryhub.llm.usage import BYTES_PER_TOKEN, Usage, usage_said

MOST_CALLS = 64  # of one reply
MOST_ARGUMENTS = 200_000  # characters of one call
MOST_TEXT = 1_000_000  # characters of one answer
THOUGHT_FIELDS = ("reasoning_content", "reasoning")  # DeepSeek, vLLM, llama.cpp; OpenRouter, Ollama


class StreamedAnswer:
    """What was read of one streamed answer so far."""

    def __init__(self) -> None:
        self.has_begun = False
        self.has_text = False
        self.thought = ""  # of the last chunk, where the server tells it from the text by itself
        self.finish_reason: str | None = None
        self.usage: Usage | None = None  # as the server says it, in the end or with each chunk so far
        self._calls: list[_CallSoFar] = []
        self._length = 0

    def read(self, chunk: Any) -> str:
        """The text of one chunk."""
        self.has_begun, self.thought = True, ""
        self.usage = usage_said(getattr(chunk, "usage", None)) or self.usage
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list):
            raise ModelBadReply(detail=f"a chunk without choices: {str(chunk)[:100]}")
        if not choices:  # usage figures, or Azure's filter results
            return ""
        delta = getattr(choices[0], "delta", None)
        text = getattr(delta, "content", None) or ""
        if not isinstance(text, str):
            raise ModelBadReply(detail=f"content is {type(text).__name__}")
        if getattr(delta, "refusal", None):
            raise ContentFiltered(detail=str(getattr(delta, "refusal", "")))
        thought = next(filter(None, (getattr(delta, name, None) for name in THOUGHT_FIELDS)), "")
        self.thought = thought if isinstance(thought, str) else ""
        for fragment in getattr(delta, "tool_calls", None) or ():
            self._read_call(fragment)
        self.finish_reason = getattr(choices[0], "finish_reason", None) or self.finish_reason
        self.has_text = self.has_text or bool(text)
        self._length += len(text) + len(self.thought)
        if self._length > MOST_TEXT:
            raise ModelBadReply(detail="an answer without end")
        return text

    @property
    def written(self) -> int:
        """About how many tokens: of text, thoughts and calls."""
        return int((self._length + sum(len(call.arguments) for call in self._calls)) / BYTES_PER_TOKEN)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls asked for so far; their arguments are what the model wrote, which may be no JSON."""
        return tuple(
            ToolCall(call.id or f"call_{number}", call.name, call.arguments)
            for number, call in enumerate(self._calls, start=1)
        )

    def _read_call(self, fragment: Any) -> None:
        """One fragment: the first of a call has its name, all have a part of the arguments.

        Servers that send calls whole number them all 0, or not at all: another id, or a name where one is complete,
        begins another call.
        """
        function = getattr(fragment, "function", None)
        name, part = getattr(function, "name", None) or "", getattr(function, "arguments", None) or ""
        if isinstance(part, dict):
            part = json.dumps(part)
        if not isinstance(name, str) or not isinstance(part, str):
            raise ModelBadReply(detail=f"a tool call whose arguments are {type(part).__name__}")
        index, call_id = getattr(fragment, "index", None), getattr(fragment, "id", None) or ""
        same = [call for call in self._calls if call.index == index]
        call = same[-1] if same else None
        other_id = call is not None and call_id and call.id and call_id != call.id
        if call is None or other_id or (name and (name != call.name or _is_json(call.arguments))):
            if len(self._calls) >= MOST_CALLS:
                raise ModelBadReply(detail="more tool calls than anybody needs")
            call = _CallSoFar(index, str(call_id)[:200], name)
            self._calls.append(call)
        call.arguments += part
        if len(call.arguments) > MOST_ARGUMENTS:
            raise ModelBadReply(detail="a tool call with arguments without end")

    def finish(self) -> str:
        """Why the answer ended, once the stream has."""
        if not self.has_begun:
            raise ModelBadReply(detail="the reply was no stream of events")
        if self.finish_reason is None:
            raise ModelCut(detail="the stream ended without a finish_reason")
        _check_end(self.finish_reason, self.has_text or bool(self._calls))
        return self.finish_reason


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


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


def whole_text(reply: Any) -> str:
    try:
        choice = reply.choices[0]
        text, refusal = choice.message.content or "", getattr(choice.message, "refusal", None)
    except (AttributeError, TypeError, IndexError) as error:
        raise ModelBadReply(detail=f"no chat completion: {str(reply)[:200]}") from error
    if not isinstance(text, str):
        raise ModelBadReply(detail=f"content is {type(text).__name__}")
    if refusal:
        raise ContentFiltered(detail=str(refusal))
    _check_end(choice.finish_reason, bool(text))
    return text


def vectors_in_order(reply: Any, count: int) -> list[list[float]]:
    """Vectors in the order of the texts, which the server may not keep."""
    try:
        by_index = {item.index: item.embedding for item in reply.data}
        returned = len(reply.data)
    except (AttributeError, TypeError) as error:
        raise EmbedderBadReply(detail=f"no embeddings: {str(reply)[:200]}") from error
    if returned != count or set(by_index) != set(range(count)):
        raise EmbedderBadReply(detail=f"{returned} vectors for {count} texts, or numbered wrongly")
    return [by_index[index] for index in range(count)]
