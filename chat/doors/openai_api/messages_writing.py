"""A chat completion as an answer of ``/v1/messages``: whole, or the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from chat.doors.openai_api.answering import Answering
from chat.doors.openai_api.errors import as_anthropic, error_of
from chat.doors.openai_api.program_request import Asked, Body
from chat.doors.openai_api.request_parts import parts_of_body
from memoryhub.ids import new_id
from memoryhub.llm.base import Delta, ToolCall
from memoryhub.llm.errors import ContentFiltered, ModelBadReply
from memoryhub.llm.openai_replies import StreamedAnswer
from memoryhub.llm.output_parsing import HeldCall, Piece, ThoughtSplitter
from memoryhub.llm.usage import Usage

REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
LEAST_ANSWER = 1_024  # tokens that may be asked for, however full the context seems by our estimate


def limit_answer(answering: Answering) -> None:
    """Lower ``max_tokens`` to what the model's context has left: every request must name it, so clients name the most
    that Anthropic's models can, and servers refuse more than fits.
    """
    body = answering.body
    left = answering.chosen.model.capabilities.context_tokens - parts_of_body(body).whole
    body["max_completion_tokens"] = min(body["max_completion_tokens"], max(LEAST_ANSWER, left))


class MessageWriter:
    """Takes a completion's chunks, gives the events of it and in the end the whole.

    Text goes out as it comes. Thoughts are left out: they would need Anthropic's signature. Calls of tools go out whole
    at the end, as servers send their pieces in any order.
    """

    def __init__(self, asked: Asked, note: Body) -> None:
        names = [tool["function"]["name"] for tool in asked.body.get("tools", ())]
        self._answer, self._thoughts, self._held = StreamedAnswer(), ThoughtSplitter(), HeldCall(names)
        self._stops: list[str] = asked.body.get("stop", [])
        self._stopped_by: str | None = None
        self._is_filtered = self._has_begun = False
        self._content: list[Body] = []
        self._usage = Usage(tokens_in=parts_of_body({**asked.body, "messages": asked.messages}).whole)
        self._message = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": asked.model}
        self._note = note

    def whole(self, reply: Body) -> Body:
        """The answer to a request that is not streamed."""
        choice = reply["choices"][0] if reply["choices"] else {}
        choice = {**choice, "delta": choice.get("message")} if isinstance(choice, dict) else choice
        for _event in [*self._read({**reply, "choices": [choice]}), *self._end()]:
            pass
        return self._body()

    def chunks(self, chunks: Iterable[Body]) -> str:
        return "".join(line for chunk in chunks for line in self._read(chunk))

    def over(self) -> str:
        return "".join(self._end())

    def failed(self, error: Exception) -> str:
        status, said, _headers = error_of(error)
        body = as_anthropic(status, said)
        return _event("error", error=body["error"])

    def _read(self, chunk: Body) -> Iterator[str]:
        yield from self._begin(chunk.get("model"))
        try:
            text = self._answer.read(chunk)
        except ContentFiltered:
            self._is_filtered, text = True, ""
        self._stopped_by = self._stop_in(chunk) or self._stopped_by
        yield from self._say(self._held.feed(_delta(self._thoughts.feed(text))))

    def _begin(self, model: Any) -> Iterator[str]:
        if not self._has_begun:
            self._has_begun = True
            self._message["model"] = model if isinstance(model, str) else self._message["model"]
            begun = {**self._body(), "content": [], "stop_reason": None}
            yield _event("message_start", message=begun)

    def _stop_in(self, chunk: Body) -> str | None:
        """Which of the stop sequences ended the answer, where the server says it, as vLLM does."""
        choice = chunk["choices"][0] if chunk["choices"] else {}
        stop = choice.get("stop_reason") if isinstance(choice, dict) else None
        return stop if isinstance(stop, str) and stop in self._stops else None

    def _say(self, delta: Delta | None) -> Iterator[str]:
        if delta is None or not delta.text:
            return
        if not self._content:
            self._content.append({"type": "text", "text": ""})
            yield _event("content_block_start", index=0, content_block=self._content[0])
        self._content[0] = {"type": "text", "text": self._content[0]["text"] + delta.text}
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": delta.text})

    def _end(self) -> Iterator[str]:
        yield from self._begin(None)
        yield from self._say(self._held.end(_delta(self._thoughts.end()), self._answer))
        if self._content:
            yield _event("content_block_stop", index=0)
        for call in self._answer.tool_calls:
            yield from self._call(call)
        body = self._body()
        delta = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
        yield _event("message_delta", delta=delta, usage=body["usage"])
        yield _event("message_stop")

    def _call(self, call: ToolCall) -> Iterator[str]:
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict) or not call.name:
            raise ModelBadReply(detail=f"a tool call that is no JSON object: {call.arguments[:100]}")
        at = len(self._content)
        block: Body = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
        self._content.append(block)
        yield _event("content_block_start", index=at, content_block={**block, "input": {}})
        text = json.dumps(arguments, ensure_ascii=False)
        yield _event(
            "content_block_delta", index=at, delta={"type": "input_json_delta", "partial_json": text}
        )
        yield _event("content_block_stop", index=at)

    def _body(self) -> Body:
        usage = self._answer.usage or self._usage
        counts = {
            "input_tokens": usage.tokens_in - min(usage.cached, usage.tokens_in),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.tokens_out or (self._answer.written if self._has_begun else 0),
        }
        return {
            **self._message,
            "content": list(self._content),
            "stop_reason": self._reason,
            "stop_sequence": self._stopped_by,
            "usage": counts,
            "memoryhub": self._note,
        }

    @property
    def _reason(self) -> str:
        if self._is_filtered:
            return "refusal"
        if any(block["type"] == "tool_use" for block in self._content):
            return "tool_use"
        if self._stopped_by is not None:
            return "stop_sequence"
        return REASONS.get(self._answer.finish_reason or "stop", "end_turn")


def _delta(piece: Piece) -> Delta:
    return Delta(piece.answer, retracts=piece.retracts)


def _event(kind: str, **said: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **said})}\n\n"
