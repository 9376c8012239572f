"""Conversion of messages to forms that servers accept: without pictures, or with a single system message."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

import httpx2
import openai

from memoryhub.llm.base import Message
from memoryhub.llm.clients import Endpoint, ask_for_models

SECONDS = 2.0  # timeout of a request for the list of models
UNSEEN = "(You cannot be shown this picture.)"
# Error messages of OpenAI, Mistral, DeepSeek, Groq, OpenRouter, Ollama, vLLM, llama.cpp and LM Studio for a model
# without vision.
NO_PICTURES = re.compile(
    r"\bimages?\b.{0,40}\b(?:not|only)\b.{0,20}\b(?:support|enabl|allow|accept)|image_url is only supported"
    r"|not support\w*\b.{0,30}\bimages?\b|endpoints found that support image|at most 0 image|not a multimodal model"
    r"|mmproj|missing data required for image|unknown variant .?image_url|content\W* must be a string"
    r"|(?:does|is|do) not (?:\w+ ){0,3}(?:vision|multi-?modal)",
    re.IGNORECASE,
)


def content_of(message: Message) -> str | list[dict[str, Any]]:
    """Return a message's content: plain text, or with pictures a list of parts, each picture after its label."""
    if not message.pictures:
        return message.content
    parts = [_text(message.content)]
    for picture in message.pictures:
        parts.append(_text(picture.label if picture.jpeg else f"{picture.label} {UNSEEN}"))
        if picture.jpeg:
            address = f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": address}})
    if not any(picture.jpeg for picture in message.pictures):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def without_pictures(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages for a model without vision: labels instead of pictures, marked as not shown."""
    return [
        {**message, "content": _unseen(message["content"])}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def have_pictures(messages: Sequence[dict[str, Any]]) -> bool:
    return any(isinstance(message["content"], list) for message in messages)


def joined(first: Any, second: Any) -> Any:
    """Join two contents, each a string or a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return "\n\n".join(filter(None, (first, second)))
    return [
        part
        for content in (first, second)
        for part in ([_text(content)] if isinstance(content, str) else content)
    ]


def says_it_is_blind(error: Exception) -> bool:
    return isinstance(error, openai.APIStatusError) and bool(NO_PICTURES.search(error.message))


def listed_sight(endpoint: Endpoint) -> bool | None:
    """Return whether the server's list of models states vision support; None if unknown. Takes two seconds at most."""
    try:
        listed = ask_for_models(endpoint, seconds=SECONDS).json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        return None
    rows = [row for name in ("data", "models") for row in _list(listed, name) if isinstance(row, dict)]
    ours = [row for row in rows if endpoint.model in (row.get("id"), row.get("name"), row.get("model"))]
    return next((sees for row in ours if (sees := _sight_of(row)) is not None), None)


def _sight_of(row: dict[str, Any]) -> bool | None:
    """Return a listed model's vision support in the formats of OpenRouter, Mistral and llama.cpp; None if not
    stated.
    """
    abilities = row.get("capabilities")
    if isinstance(abilities, dict) and isinstance(abilities.get("vision"), bool):
        return bool(abilities["vision"])
    takes = _list(row.get("architecture"), "input_modalities")
    if takes:
        return "image" in takes
    return (
        True if isinstance(abilities, list) and {"multimodal", "vision"} & set(map(str, abilities)) else None
    )


def _list(found: Any, name: str) -> list[Any]:
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, list) else []


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _unseen(parts: Sequence[dict[str, Any]]) -> str:
    """Return a message's parts as text, with each picture's label marked as not shown."""
    said: list[str] = []
    for part in parts:
        if part["type"] == "text":
            said.append(part["text"])
        else:
            said[-1] = f"{said[-1]} {UNSEEN}"
    return "\n\n".join(filter(None, said))


# Messages for strict chat templates: one system message at the start, then user and assistant messages in turn.

Body = dict[str, Any]  # a message as it is sent

# Error messages of the templates of Mistral, Gemma, Llama 2, Qwen 3.5 and others, in vLLM, llama.cpp, TGI and Ollama.
STRICT = re.compile(
    r"roles? must alternate|must alternate between|alternating (?:user|roles)"
    r"|(?:must|should|has to|can only) be (?:at )?the (?:first|beginning|start)"
    r"|only (?:one|a single) system|(?:multiple|two|several) system messages"
    r"|unexpected role|role ['\"]?system['\"]? (?:is )?not allowed",
    re.IGNORECASE,
)
NO_SYSTEM = re.compile(
    r"system (?:role|messages?|prompts?)\b.{0,20}\bnot (?:be )?support|not support.{0,20}\bsystem\b|invalid role:? "
    r"['\"]?system",
    re.IGNORECASE,
)


def fold(messages: Sequence[Body], *, keeps_system: bool = True) -> list[Body]:
    """Return the messages for strict chat templates, with the same text in the same order.

    Later system messages are merged into the next user message, and consecutive messages of one role are merged. With
    ``keeps_system=False`` the first system message is merged into a user message too.
    """
    folded: list[Body] = []
    for number, message in enumerate(messages):
        is_head = keeps_system and all(each["role"] == "system" for each in messages[: number + 1])
        role = "user" if message["role"] == "system" and not is_head else message["role"]
        last = folded[-1] if folded else None
        if last is None or role == "tool" or last["role"] != role or "tool_calls" in last:
            folded.append({**message, "role": role})
        else:
            content = joined(last["content"], message["content"])
            folded[-1] = {**last, **message, "role": role, "content": content}
    return folded
