"""``/v1/responses``: conversion of its requests to chat completions, and of completions to its responses."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.http.request import HttpHeaders
from django.utils.translation import gettext as _

from chat.programs.openai_api.request import (
    MOST_MESSAGES,
    Asked,
    Body,
    error_of,
    ours_of,
    require_model,
    require_tools,
    token_limit,
)
from memoryhub.errors import Invalid
from memoryhub.ids import new_id
from memoryhub.llm.errors import ModelBadReply
from memoryhub.localization import grouped

# Same name in both APIs. Parameters not named in this module are dropped.
# fmt: off
SAME = (
    "temperature", "top_p", "parallel_tool_calls", "user", "seed", "service_tier", "prompt_cache_key",
    "safety_identifier", "top_logprobs", "stop", "presence_penalty", "frequency_penalty",
)
# fmt: on
ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
FUNCTION = ("name", "description", "parameters", "strict")  # fields of a tool that are passed on
STATELESS = {"previous_response_id", "conversation", "prompt", "background"}


def read_response(body: Any, headers: HttpHeaders) -> tuple[Asked, Body]:
    """Return the body as a request for chat completions, and those of its fields that the response repeats.

    Raises Invalid with the name of the field.
    """
    require_model(body)
    for name in STATELESS:
        if body.get(name):
            why = _("is not available: nothing is stored here. Send the whole conversation in input")
            raise Invalid(fields={name: why})
    ours, rest = ours_of(body.get("metadata"), headers)
    chat: Body = {name: body[name] for name in SAME if body.get(name) is not None}
    chat |= _limits(body) | _format(body.get("text")) | _tools(body)
    if rest:
        chat["metadata"] = rest
    messages = _messages(body)
    api_request = Asked(chat, body["model"], messages, body.get("stream") is True, **ours)
    if api_request.stream:
        chat["stream_options"] = {"include_usage": True}
    return api_request, _repeated(body, rest)


def _repeated(body: Body, metadata: Body) -> Body:
    fields = {
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
    }
    for name in ("instructions", "max_output_tokens", "temperature", "top_p", "reasoning", "user", *fields):
        if body.get(name) is not None or name not in fields:
            fields[name] = body.get(name)
    return {
        **fields,
        "metadata": metadata,
        "previous_response_id": None,
        "store": False,
        "truncation": "disabled",
    }


def _limits(body: Body) -> Body:
    parameters: Body = {}
    if body.get("max_output_tokens") is not None:
        parameters["max_completion_tokens"] = token_limit(body, "max_output_tokens")
    if (reasoning := body.get("reasoning")) is not None:
        if not isinstance(reasoning, dict):
            raise Invalid(fields={"reasoning": _("must be an object")})
        if reasoning.get("effort") is not None:
            parameters["reasoning_effort"] = reasoning["effort"]
    return parameters


def _format(text: Any) -> Body:
    """Return the parameters for JSON mode, a JSON schema and verbosity. Raises Invalid for a wrong format."""
    if text is None:
        return {}
    wanted = text.get("format") if isinstance(text, dict) else text
    if not isinstance(text, dict) or not isinstance(wanted, dict | None):
        raise Invalid(fields={"text": _("must be an object, and its format one with a type")})
    parameters: Body = {"verbosity": text["verbosity"]} if text.get("verbosity") else {}
    kind = (wanted or {}).get("type", "text")
    if kind == "json_schema":
        schema = {
            name: value for name, value in (wanted or {}).items() if name != "type" and value is not None
        }
        return {**parameters, "response_format": {"type": kind, "json_schema": schema}}
    if kind == "json_object":
        return {**parameters, "response_format": {"type": kind}}
    if kind != "text":
        raise Invalid(fields={"text.format.type": _("must be one of %s") % "text, json_object, json_schema"})
    return parameters


def _tools(body: Body) -> Body:
    parameters: Body = {}
    require_tools(body)
    tools = body.get("tools")
    if tools:
        for at, tool in enumerate(tools):
            if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
                why = _("must be a function with a name: there are no others here")
                raise Invalid(fields={f"tools[{at}]": why})
        parameters["tools"] = [
            {
                "type": "function",
                "function": {name: tool[name] for name in FUNCTION if tool.get(name) is not None},
            }
            for tool in tools
        ]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        if choice.get("type") != "function" or not isinstance(choice.get("name"), str):
            raise Invalid(fields={"tool_choice": _("must be auto, none, required, or one function")})
        choice = {"type": "function", "function": {"name": choice["name"]}}
    return {**parameters, "tool_choice": choice} if choice is not None and tools else parameters


def _messages(body: Body) -> list[Body]:
    instructions, raw_input = body.get("instructions"), body.get("input")
    if not isinstance(instructions, str | None):
        raise Invalid(fields={"instructions": _("must be text")})
    items = [{"role": "user", "content": raw_input}] if isinstance(raw_input, str) else raw_input
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_MESSAGES:
        raise Invalid(
            fields={"input": _("must be text, or a list of 1 to %s items") % grouped(MOST_MESSAGES)}
        )
    messages: list[Body] = [{"role": "system", "content": instructions}] if instructions else []
    for at, item in enumerate(items):
        _add(messages, item, f"input[{at}]")
    return messages


def _add(messages: list[Body], item: Any, where: str) -> None:
    """Append an item to the messages: a message, a tool call (parallel calls share one message), or a tool's result."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "message" and (role := _name(item.get("role"))) in ROLES:
        messages.append({"role": ROLES[role], "content": _content(item.get("content"), where)})
    elif kind == "function_call":
        last = messages[-1] if messages else {}
        if last.get("role") != "assistant":
            messages.append(last := {"role": "assistant", "content": None})
        last.setdefault("tool_calls", []).append(_call(item, where))
    elif kind == "function_call_output" and isinstance(item.get("call_id"), str):
        content = _content(item.get("output"), where)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})
    elif kind != "reasoning":  # reasoning of earlier answers is dropped
        raise Invalid(fields={where: _("must be a message, a function_call or a function_call_output")})


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def _call(item: Body, where: str) -> Body:
    call = {name: item.get(name) for name in ("call_id", "name", "arguments")}
    if not all(isinstance(value, str) for value in call.values()):
        raise Invalid(fields={where: _("must have call_id, name and arguments")})
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["call_id"], "type": "function", "function": function}


def _content(content: Any, where: str) -> str | list[Body]:
    """Return content as a string if it is text, as many prompt templates require, else as parts. Raises Invalid."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Invalid(fields={where: _("must have text or a list of parts as its content")})
    parts = list(_parts(content, where))
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _parts(content: list[Any], where: str) -> Iterable[Body]:
    for at, part in enumerate(content):
        kind = _name(part.get("type")) if isinstance(part, dict) else ""
        if kind in TEXTS and isinstance(part.get(TEXTS[kind]), str):
            yield {"type": "text", "text": part[TEXTS[kind]]}
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            yield {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
        elif kind == "input_file" and isinstance(part.get("file_data"), str):
            named = {"filename": part["filename"]} if part.get("filename") else {}
            yield {"type": "file", "file": {"file_data": part["file_data"], **named}}
        elif kind == "input_audio" and isinstance(part.get("input_audio"), dict):
            yield {"type": "input_audio", "input_audio": part["input_audio"]}
        else:
            why = _("must be text, or a picture, file or sound with its data in it")
            raise Invalid(fields={f"{where}.content[{at}]": why})


# Parts of a message, and the field that holds the text of each.
PARTS = {"output_text": "text", "refusal": "refusal"}
CUT_SHORT = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass
class Item:
    """An output item of the response. ``kind``: "function_call", or the type of a message's part."""

    kind: str
    at: int
    id: str
    call: Body = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    status: str = "in_progress"

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def part(self) -> Body:
        extra: Body = {"annotations": [], "logprobs": []} if self.kind == "output_text" else {}
        return {"type": self.kind, PARTS[self.kind]: self.text, **extra}

    @property
    def body(self) -> Body:
        own: Body = {"id": self.id, "status": self.status}
        if self.kind == "function_call":
            return {**own, "type": self.kind, **self.call, "arguments": self.text}
        content = [self.part] if self.pieces else []
        return {**own, "type": "message", "role": "assistant", "content": content}


class Responding:
    """Converter of a completion's chunks to events, or to one complete response, with fields of the request."""

    def __init__(self, model: str, repeated: Body, note: Body) -> None:
        self._items: list[Item] = []
        self._calls: dict[object, Item] = {}
        self._count = 0
        self._reason, self._usage, self._model = "", None, model
        self._error: Body | None = None
        self._always = {
            **repeated,
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "memoryhub": note,
        }

    def whole(self, reply: Body) -> Body:
        """Return the complete response to a request that is not streamed."""
        choice = _choice(reply) or {}
        for _event in self._read({**reply, "choices": [{**choice, "delta": choice.get("message") or {}}]}):
            pass
        for _event in self._close(self._items):
            pass
        return self._body(self._outcome)

    def chunks(self, chunks: Iterable[Body]) -> str:
        return "".join(line for chunk in chunks for line in self._read(chunk))

    def over(self) -> str:
        lines = [*self._begun(), *self._close(self._items)]
        return "".join([*lines, self._event(f"response.{self._outcome}", response=self._body(self._outcome))])

    def failed(self, error: Exception) -> str:
        error_body = error_of(error)[1]["error"]
        code = "rate_limit_exceeded" if error_body["code"] == "rate_limit_exceeded" else "server_error"
        self._error = {"code": code, "message": error_body["message"]}
        return "".join([*self._begun(), self._event("response.failed", response=self._body("failed"))])

    @property
    def _outcome(self) -> str:
        return "incomplete" if self._reason in CUT_SHORT else "completed"

    def _body(self, status: str) -> Body:
        cut = {"reason": CUT_SHORT[self._reason]} if status == "incomplete" else None
        return {
            **self._always,
            "model": self._model,
            "status": status,
            "error": self._error,
            "incomplete_details": cut,
            "output": [item.body for item in self._items],
            "usage": _usage(self._usage) if status != "in_progress" else None,
        }

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._count = self._count, self._count + 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **fields})}\n\n"

    def _begun(self) -> Iterator[str]:
        if not self._count:
            yield self._event("response.created", response=self._body("in_progress"))
            yield self._event("response.in_progress", response=self._body("in_progress"))

    def _read(self, chunk: Body) -> Iterator[str]:
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        yield from self._begun()
        choice = _choice(chunk)
        if choice is None or choice.get("index"):
            return
        delta: Body = choice["delta"] if isinstance(choice.get("delta"), dict) else {}
        for name, kind in (("content", "output_text"), ("refusal", "refusal")):
            if isinstance(text := delta.get(name), str) and text:
                yield from self._say(kind, text)
        for at, call in enumerate(_calls(delta)):
            yield from self._call(call, at)
        if isinstance(choice.get("finish_reason"), str):
            self._reason = choice["finish_reason"]

    def _say(self, kind: str, text: str) -> Iterator[str]:
        item = self._items[-1] if self._items else None
        if item is None or item.kind != kind:
            yield from self._close([each for each in self._items if each.kind != "function_call"])
            item = self._new(kind, "msg")
            yield self._event("response.output_item.added", output_index=item.at, item=item.body)
            yield self._event("response.content_part.added", **self._place(item), part=item.part)
        item.pieces.append(text)
        logprobs: Body = {"logprobs": []} if kind == "output_text" else {}
        yield self._event(f"response.{kind}.delta", **self._place(item), delta=text, **logprobs)

    def _call(self, call: Body, at: int) -> Iterator[str]:
        """Yield the events of a new tool call, or of more arguments of an earlier one."""
        function = call.get("function") or {}
        index = call.get("index", at)
        item = self._calls.get(index)
        if item is None:
            yield from self._close([each for each in self._items if each.kind != "function_call"])
            item = self._calls[index] = self._new("function_call", "fc")
            item.call = {"call_id": call.get("id") or new_id("call"), "name": function.get("name") or ""}
            yield self._event("response.output_item.added", output_index=item.at, item=item.body)
        if more := function.get("arguments"):
            item.pieces.append(more)
            yield self._event(
                "response.function_call_arguments.delta", output_index=item.at, item_id=item.id, delta=more
            )

    def _new(self, kind: str, prefix: str) -> Item:
        self._items.append(item := Item(kind, len(self._items), new_id(prefix)))
        return item

    def _close(self, items: Iterable[Item]) -> Iterator[str]:
        for item in items:
            if item.status != "in_progress":
                continue
            item.status = "incomplete" if self._reason in CUT_SHORT else "completed"
            if item.kind == "function_call":
                call_fields = {"output_index": item.at, "item_id": item.id, "name": item.call["name"]}
                yield self._event("response.function_call_arguments.done", **call_fields, arguments=item.text)
            else:
                words: Body = {PARTS[item.kind]: item.text}
                words |= {"logprobs": []} if item.kind == "output_text" else {}
                yield self._event(f"response.{item.kind}.done", **self._place(item), **words)
                yield self._event("response.content_part.done", **self._place(item), part=item.part)
            yield self._event("response.output_item.done", output_index=item.at, item=item.body)

    def _place(self, item: Item) -> Body:
        return {"item_id": item.id, "output_index": item.at, "content_index": 0}


def _choice(reply: Body) -> Body | None:
    """Return the first choice, or None. Raises ModelBadReply for a malformed choice."""
    if not reply["choices"]:
        return None
    choice: Body = reply["choices"][0]
    _check(isinstance(choice, dict) and isinstance(choice.get("index"), int | None), "a choice", choice)
    return choice


def _calls(delta: Body) -> list[Body]:
    """Return the tool calls. Raises ModelBadReply for a malformed call."""
    calls: list[Body] = delta.get("tool_calls") or []
    _check(isinstance(calls, list), "calls of tools", calls)
    for call in calls:
        _check(isinstance(call, dict) and isinstance(call.get("index"), int | None), "a call", call)
        function: Body = call.get("function") or {}
        _check(isinstance(function, dict), "a call", call)
        texts = (call.get("id"), function.get("name"), function.get("arguments"))
        _check(all(isinstance(text, str | None) for text in texts), "a call", call)
    return calls


def _check(is_right: bool, what: str, value: object) -> None:
    if not is_right:
        raise ModelBadReply(detail=f"no form for {what}: {str(value)[:200]}")


def _usage(usage: object) -> Body | None:
    """Return the model's token counts under the names of this API. A value that is not a count becomes 0."""
    if not isinstance(usage, dict):
        return None
    read, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    thought = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": _count(usage, "total_tokens") or read + written,
    }


def _count(of: object, name: str) -> int:
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, int) else 0
