"""``/v1/responses``: a request in its form, as one for a chat completion, which every model's server understands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.http.request import HttpHeaders
from django.utils.translation import gettext as _

from chat.doors.openai_api.program_request import MOST_MESSAGES, Asked, Body, ours_of, require_model
from memoryhub.errors import Invalid
from memoryhub.languages import grouped

# Under the same name in both; what is not listed anywhere here is not passed on.
SAME: tuple[str, ...] = ("temperature", "top_p", "parallel_tool_calls", "user", "seed", "service_tier")
SAME += (
    "prompt_cache_key",
    "safety_identifier",
    "top_logprobs",
    "stop",
    "presence_penalty",
    "frequency_penalty",
)
ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
STATELESS = {"previous_response_id", "conversation", "prompt", "background"}


def read_response(body: Any, headers: HttpHeaders) -> tuple[Asked, Body]:
    """What is asked, and what of it the answer repeats. Raises Invalid, naming the field."""
    require_model(body)
    for name in STATELESS:
        if body.get(name):
            raise Invalid(
                fields={
                    name: _("is not available: nothing is stored here. Send the whole conversation in input")
                }
            )
    ours, rest = ours_of(body.get("metadata"), headers)
    chat: Body = {name: body[name] for name in SAME if body.get(name) is not None}
    chat |= _limits(body) | _format(body.get("text")) | _tools(body)
    if rest:
        chat["metadata"] = rest
    messages = _messages(body)
    asked = Asked(chat, body["model"], messages, body.get("stream") is True, **ours)
    if asked.stream:
        chat["stream_options"] = {"include_usage": True}
    return asked, _repeated(body, rest)


def _repeated(body: Body, metadata: Body) -> Body:
    given = {
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
    }
    for name in ("instructions", "max_output_tokens", "temperature", "top_p", "reasoning", "user", *given):
        if body.get(name) is not None or name not in given:
            given[name] = body.get(name)
    return {
        **given,
        "metadata": metadata,
        "previous_response_id": None,
        "store": False,
        "truncation": "disabled",
    }


def _limits(body: Body) -> Body:
    found: Body = {}
    if (most := body.get("max_output_tokens")) is not None:
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise Invalid(fields={"max_output_tokens": _("must be a whole number from 1")})
        found["max_completion_tokens"] = most
    if (reasoning := body.get("reasoning")) is not None:
        if not isinstance(reasoning, dict):
            raise Invalid(fields={"reasoning": _("must be an object")})
        if reasoning.get("effort") is not None:
            found["reasoning_effort"] = reasoning["effort"]
    return found


def _format(text: Any) -> Body:
    """JSON mode and schemas."""
    if text is None:
        return {}
    wanted = text.get("format") if isinstance(text, dict) else text
    if not isinstance(text, dict) or not isinstance(wanted, dict | None):
        raise Invalid(fields={"text": _("must be an object, and its format one with a type")})
    found: Body = {"verbosity": text["verbosity"]} if text.get("verbosity") else {}
    kind = (wanted or {}).get("type", "text")
    if kind == "json_schema":
        schema = {
            name: value for name, value in (wanted or {}).items() if name != "type" and value is not None
        }
        return {**found, "response_format": {"type": kind, "json_schema": schema}}
    if kind == "json_object":
        return {**found, "response_format": {"type": kind}}
    if kind != "text":
        raise Invalid(fields={"text.format.type": _("must be one of %s") % "text, json_object, json_schema"})
    return found


def _tools(body: Body) -> Body:
    found: Body = {}
    tools = body.get("tools")
    if tools:
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise Invalid(fields={"tools": _("must be a list of tools")})
        for at, tool in enumerate(tools):
            if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
                raise Invalid(
                    fields={f"tools[{at}]": _("must be a function with a name: there are no others here")}
                )
        found["tools"] = [
            {
                "type": "function",
                "function": {name: tool[name] for name in tool if _is_of_function(name, tool)},
            }
            for tool in tools
        ]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        if choice.get("type") != "function" or not isinstance(choice.get("name"), str):
            raise Invalid(fields={"tool_choice": _("must be auto, none, required, or one function")})
        choice = {"type": "function", "function": {"name": choice["name"]}}
    return {**found, "tool_choice": choice} if choice is not None and tools else found


def _is_of_function(name: str, tool: Body) -> bool:
    return name in {"name", "description", "parameters", "strict"} and tool[name] is not None


def _messages(body: Body) -> list[Body]:
    instructions, given = body.get("instructions"), body.get("input")
    if not isinstance(instructions, str | None):
        raise Invalid(fields={"instructions": _("must be text")})
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_MESSAGES:
        raise Invalid(
            fields={"input": _("must be text, or a list of 1 to %s items") % grouped(MOST_MESSAGES)}
        )
    messages: list[Body] = [{"role": "system", "content": instructions}] if instructions else []
    for at, item in enumerate(items):
        _add(messages, item, f"input[{at}]")
    return messages


def _add(messages: list[Body], item: Any, where: str) -> None:
    """One item: a message, a call of a tool (calls at one time are of one message), or what it came to."""
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
    elif kind != "reasoning":  # that is the model's own, of another time
        raise Invalid(fields={where: _("must be a message, a function_call or a function_call_output")})


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _call(item: Body, where: str) -> Body:
    call = {name: item.get(name) for name in ("call_id", "name", "arguments")}
    if not all(isinstance(value, str) for value in call.values()):
        raise Invalid(fields={where: _("must have call_id, name and arguments")})
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["call_id"], "type": "function", "function": function}


def _content(content: Any, where: str) -> str | list[Body]:
    """Text where there is nothing else: templates of many models take no list."""
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
            raise Invalid(
                fields={
                    f"{where}.content[{at}]": _(
                        "must be text, or a picture, file or sound with its data in it"
                    )
                }
            )
