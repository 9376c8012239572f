"""``/v1/messages``: a request in Anthropic's form, as one for a chat completion, which every model's server reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.http.request import HttpHeaders
from django.utils.translation import gettext as _

from chat.doors.openai_api.program_request import MOST_MESSAGES, Asked, Body, ours_of, require_model
from memoryhub.errors import Invalid
from memoryhub.languages import grouped

SAME = (
    "temperature",
    "top_p",
    "top_k",
)  # under one name in both; what is named nowhere here is not passed on
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
THOUGHTS = {"thinking", "redacted_thinking"}  # the model's own, of another time
ELSEWHERE = ("container", "mcp_servers")  # run at Anthropic


def read_message(body: Any, headers: HttpHeaders, *, needs_limit: bool = True) -> Asked:
    """Read a request for an answer. Raises Invalid, naming the field."""
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
    most, stops = body.get("max_tokens"), body.get("stop_sequences")
    if most is not None or needs_limit:
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise Invalid(fields={"max_tokens": _("must be a whole number from 1")})
        limits["max_completion_tokens"] = most
    if stops:
        if not isinstance(stops, list) or not all(isinstance(each, str) for each in stops):
            raise Invalid(fields={"stop_sequences": _("must be a list of texts")})
        limits["stop"] = stops
    return limits


def _format(config: Any) -> Body:
    """Return the JSON schema that the answer must follow, if the request names one."""
    wanted = config.get("format") if isinstance(config, dict) else None
    if not wanted:
        return {}
    if not isinstance(wanted, dict) or not isinstance(wanted.get("schema"), dict):
        raise Invalid(fields={"output_config.format": _("must be a json_schema with a schema")})
    schema = {"name": "answer", "schema": wanted["schema"], "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tools(body: Body) -> Body:
    tools = body.get("tools")
    if not tools:
        return {}
    if not isinstance(tools, list):
        raise Invalid(fields={"tools": _("must be a list of tools")})
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


def _tool(tool: Any, where: str) -> Body:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise Invalid(fields={where: _("must be a tool with a name")})
    if tool.get("type") not in {None, "custom"} or not isinstance(tool.get("input_schema"), dict):
        raise Invalid(
            fields={where: _("must have an input_schema: tools that run elsewhere are not available here")}
        )
    function: Body = {"name": tool["name"], "parameters": tool["input_schema"]}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _messages(body: Body) -> list[Body]:
    given = body.get("messages")
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_MESSAGES:
        raise Invalid(fields={"messages": _("must be a list of 1 to %s messages") % grouped(MOST_MESSAGES)})
    messages: list[Body] = []
    if body.get("system"):
        messages.append({"role": "system", "content": _text(_blocks(body["system"], "system"), "system")})
    for at, message in enumerate(given):
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
    """Return the results of tools, one message each, then the rest. Pictures follow their tool's message of text."""
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
        only_text = all(part["type"] == "text" for part in parts)  # templates of many models take no list
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
    return (
        {"role": "assistant", "content": content or None, "tool_calls": calls}
        if calls
        else {
            "role": "assistant",
            "content": content,
        }
    )


def _call(block: Body, where: str) -> Body:
    if not all(isinstance(block.get(name), str) for name in ("id", "name")) or not isinstance(
        block.get("input"), dict
    ):
        raise Invalid(fields={where: _("must have id, name and input")})
    function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
    return {"id": block["id"], "type": "function", "function": function}


def _text(blocks: list[Body], where: str) -> str:
    if not all(block["type"] == "text" and isinstance(block.get("text"), str) for block in blocks):
        raise Invalid(fields={where: _("must be text, or a list of text blocks")})
    return "\n".join(block["text"] for block in blocks)


def _parts(block: Body, where: str) -> Iterator[Body]:
    """A block of a person's message or of a tool's result, as parts of a chat completion's message."""
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
    """Return a document's text between tags, so that it does not count as the person's own words (OF_PROGRAM)."""
    inside = f"{title}\n{text}".replace("</document>", "< /document>")
    return {"type": "text", "text": f"<document>{inside}</document>"}


def _title(block: Body) -> str:
    title = block.get("title")
    return title if isinstance(title, str) and title else "document"


def _picture(url: str) -> Body:
    return {"type": "image_url", "image_url": {"url": url}}


def _are_texts(source: Body, *names: str) -> bool:
    return all(isinstance(source.get(name), str) for name in names)
