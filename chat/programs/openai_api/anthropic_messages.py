"""``/v1/messages``: conversion of Anthropic's requests to chat completions, and of completions to its responses."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.http.request import HttpHeaders
from django.utils.translation import gettext as _

from chat.programs.openai_api.answering import Answering
from chat.programs.openai_api.request import (
    Asked,
    Body,
    as_anthropic,
    error_of,
    messages_of,
    ours_of,
    parts_of_body,
    require_model,
    require_tools,
    token_limit,
)
from memoryhub.errors import Invalid
from memoryhub.ids import new_id
from memoryhub.llm.base import Delta, ToolCall
from memoryhub.llm.errors import ContentFiltered, ModelBadReply
from memoryhub.llm.metering import Usage
from memoryhub.llm.openai_replies import StreamedAnswer
from memoryhub.llm.output_parsing import OutputParser

# Same name in both APIs; parameters not named in this module are dropped.
SAME = ("temperature", "top_p", "top_k")
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
THOUGHTS = {"thinking", "redacted_thinking"}  # reasoning of earlier answers
ELSEWHERE = ("container", "mcp_servers")  # features that run on Anthropic's servers


def read_message(body: Any, headers: HttpHeaders, *, needs_limit: bool = True) -> Asked:
    """Parse a request for an answer. ``needs_limit``: ``max_tokens`` is required. Raises Invalid with the field."""
    require_model(body)
    for name in ELSEWHERE:
        if body.get(name):
            raise Invalid(fields={name: _("is not available here")})
    ours, _rest = ours_of(body.get("metadata"), headers)
    chat: Body = {name: body[name] for name in SAME if body.get(name) is not None}
    chat |= _limits(body, needs_limit=needs_limit) | _format(body.get("output_config")) | _tools(body)
    if body.get("stream"):
        chat["stream_options"] = {"include_usage": True}
    return Asked(chat, body["model"], _messages(body), body.get("stream") is True, **ours)


def _limits(body: Body, *, needs_limit: bool) -> Body:
    limits: Body = {}
    if body.get("max_tokens") is not None or needs_limit:
        limits["max_completion_tokens"] = token_limit(body, "max_tokens")
    if stops := body.get("stop_sequences"):
        if not isinstance(stops, list) or not all(isinstance(each, str) for each in stops):
            raise Invalid(fields={"stop_sequences": _("must be a list of texts")})
        limits["stop"] = stops
    return limits


def _format(config: Any) -> Body:
    """Return ``response_format`` with the requested JSON schema, if any. Raises Invalid for any other format."""
    wanted = config.get("format") if isinstance(config, dict) else None
    if not wanted:
        return {}
    if not isinstance(wanted, dict) or not isinstance(wanted.get("schema"), dict):
        raise Invalid(fields={"output_config.format": _("must be a json_schema with a schema")})
    schema = {"name": "answer", "schema": wanted["schema"], "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tools(body: Body) -> Body:
    require_tools(body)
    tools = body.get("tools")
    if not tools:
        return {}
    passed: Body = {"tools": [_tool(tool, f"tools[{at}]") for at, tool in enumerate(tools)]}
    choice = body.get("tool_choice")
    if choice is None:
        return passed
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "tool" and isinstance(choice.get("name"), str):
        passed["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    elif isinstance(kind, str) and kind in CHOICES:
        passed["tool_choice"] = CHOICES[kind]
    else:
        raise Invalid(fields={"tool_choice": _("must be auto, any, none, or one tool")})
    return passed | ({"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {})


def _tool(tool: Body, where: str) -> Body:
    if not isinstance(tool.get("name"), str):
        raise Invalid(fields={where: _("must be a tool with a name")})
    if tool.get("type") not in {None, "custom"} or not isinstance(tool.get("input_schema"), dict):
        why = _("must have an input_schema: tools that run elsewhere are not available here")
        raise Invalid(fields={where: why})
    function: Body = {"name": tool["name"], "parameters": tool["input_schema"]}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _messages(body: Body) -> list[Body]:
    raw_messages, messages = messages_of(body), list[Body]()
    if body.get("system"):
        messages.append({"role": "system", "content": _text(_blocks(body["system"], "system"), "system")})
    for at, message in enumerate(raw_messages):
        where = f"messages[{at}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in {"user", "assistant", "system"}:
            raise Invalid(fields={where: _("must be a message with a role and content")})
        blocks = _blocks(message.get("content"), where)
        if role == "user":
            messages += _of_user(blocks, where)
        elif role == "assistant":
            messages.append(_of_assistant(blocks, where))
        else:
            messages.append({"role": role, "content": _text(blocks, where)})
    return messages


def _blocks(content: Any, where: str) -> list[Body]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in content
    ):
        raise Invalid(fields={where: _("must have text or a list of blocks as its content")})
    return content


def _of_user(blocks: list[Body], where: str) -> Iterator[Body]:
    """Yield the text of each tool result as one message, then all else as one, with the images of tool results."""
    parts: list[Body] = []
    for at, block in enumerate(blocks):
        here = f"{where}.content[{at}]"
        if block["type"] != "tool_result":
            parts += _parts(block, here)
            continue
        if not isinstance(block.get("tool_use_id"), str):
            raise Invalid(fields={here: _("must have a tool_use_id")})
        result: list[Body] = []
        for inner in _blocks(block.get("content") or "", here):
            result += _parts(inner, here)
        text = "\n".join(part["text"] for part in result if part["type"] == "text")
        text = f"Error: {text}" if block.get("is_error") else text
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
        parts += [part for part in result if part["type"] != "text"]
    if parts:
        # Prompt templates of many models accept no lists.
        only_text = all(part["type"] == "text" for part in parts)
        yield {"role": "user", "content": "\n".join(part["text"] for part in parts) if only_text else parts}


def _of_assistant(blocks: list[Body], where: str) -> Body:
    texts: list[str] = []
    calls: list[Body] = []
    for at, block in enumerate(blocks):
        if block["type"] == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif block["type"] == "tool_use":
            calls.append(_call(block, f"{where}.content[{at}]"))
        elif block["type"] not in THOUGHTS:
            raise Invalid(fields={f"{where}.content[{at}]": _("must be text, tool_use or thinking")})
    content = "\n".join(texts)
    if not calls:
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _call(block: Body, where: str) -> Body:
    if not _are_texts(block, "id", "name") or not isinstance(block.get("input"), dict):
        raise Invalid(fields={where: _("must have id, name and input")})
    function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
    return {"id": block["id"], "type": "function", "function": function}


def _text(blocks: list[Body], where: str) -> str:
    if not all(block["type"] == "text" and isinstance(block.get("text"), str) for block in blocks):
        raise Invalid(fields={where: _("must be text, or a list of text blocks")})
    return "\n".join(block["text"] for block in blocks)


def _parts(block: Body, where: str) -> Iterator[Body]:
    """Convert a block of a user message or of a tool's result to parts of a chat completion's message."""
    source: Body = block["source"] if isinstance(block.get("source"), dict) else {}
    kind = (block["type"], source.get("type"))
    match kind:
        case ("text", _) if isinstance(block.get("text"), str):
            yield {"type": "text", "text": block["text"]}
        case ("image", "base64") if _are_texts(source, "media_type", "data"):
            yield _picture(f"data:{source['media_type']};base64,{source['data']}")
        case ("image", "url") if _are_texts(source, "url"):
            yield _picture(source["url"])
        case ("document", "base64") if _are_texts(source, "media_type", "data"):
            data = f"data:{source['media_type']};base64,{source['data']}"
            yield {"type": "file", "file": {"file_data": data, "filename": _title(block)}}
        case ("document", "text") if _are_texts(source, "data"):
            yield _document(_title(block), source["data"])
        case ("document", "content"):
            for inner in _blocks(source.get("content"), where):
                yield from _document_parts(_title(block), inner, where)
        case ("search_result", _):
            for inner in _blocks(block.get("content"), where):
                yield from _document_parts(_title(block), inner, where)
        case _:
            raise Invalid(fields={where: _("must be text, or a picture or document with its data in it")})


def _document_parts(title: str, block: Body, where: str) -> Iterator[Body]:
    if block["type"] not in {"text", "image"}:
        raise Invalid(fields={where: _("must be text or a picture")})
    for part in _parts(block, where):
        yield _document(title, part["text"]) if part["type"] == "text" else part


def _document(title: str, text: str) -> Body:
    """Return a text part in tags by which ``request.OF_PROGRAM`` knows that it is not the user's own words."""
    inside = f"{title}\n{text}".replace("</document>", "< /document>")
    return {"type": "text", "text": f"<document>{inside}</document>"}


def _title(block: Body) -> str:
    title = block.get("title")
    return title if isinstance(title, str) and title else "document"


def _picture(url: str) -> Body:
    return {"type": "image_url", "image_url": {"url": url}}


def _are_texts(source: Body, *names: str) -> bool:
    return all(isinstance(source.get(name), str) for name in names)


REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
LEAST_ANSWER = 1_024  # tokens always allowed, because the estimate of the context may be too high


def limit_answer(answering: Answering) -> None:
    """Lower ``max_tokens``, which clients set to the maximum of Anthropic's models, to the space in the context."""
    body = answering.body
    left = answering.chosen.model.capabilities.context_tokens - parts_of_body(body).whole
    body["max_completion_tokens"] = min(body["max_completion_tokens"], max(LEAST_ANSWER, left))


class MessageWriter:
    """Converter of a completion's chunks to Anthropic's events, or to one complete response.

    Text is sent as it arrives. Reasoning is left out, since clients would expect Anthropic's signature. Tool calls are
    sent at the end, because servers send their parts in any order.
    """

    def __init__(self, asked: Asked, note: Body) -> None:
        names = [tool["function"]["name"] for tool in asked.body.get("tools", ())]
        self._answer, self._parser = StreamedAnswer(), OutputParser(names)
        self._stops: list[str] = asked.body.get("stop", [])
        self._stopped_by: str | None = None
        self._is_filtered = self._has_begun = False
        self._content: list[Body] = []
        self._usage = Usage(tokens_in=parts_of_body({**asked.body, "messages": asked.messages}).whole)
        self._message = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": asked.model}
        self._note = note

    def whole(self, reply: Body) -> Body:
        """Return the complete response to a request that is not streamed."""
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
        status, openai_body, _headers = error_of(error)
        body = as_anthropic(status, openai_body)
        return _event("error", error=body["error"])

    def _read(self, chunk: Body) -> Iterator[str]:
        yield from self._begin(chunk.get("model"))
        try:
            text = self._answer.read(chunk)
        except ContentFiltered:
            self._is_filtered, text = True, ""
        self._stopped_by = self._stop_in(chunk) or self._stopped_by
        yield from self._say(self._parser.feed(text))

    def _begin(self, model: object) -> Iterator[str]:
        if not self._has_begun:
            self._has_begun = True
            self._message["model"] = model if isinstance(model, str) else self._message["model"]
            begun = {**self._body(), "content": [], "stop_reason": None}
            yield _event("message_start", message=begun)

    def _stop_in(self, chunk: Body) -> str | None:
        """Return the stop sequence that ended the answer, if the server reports it, as vLLM does."""
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
        yield from self._say(self._parser.end(self._answer))
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


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
