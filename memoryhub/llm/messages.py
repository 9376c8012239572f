"""Messages in the form that servers accept: pictures for models that see, one system message for strict templates."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

import httpx2
import openai

from memoryhub.llm.base import Message
from memoryhub.llm.clients import Endpoint, ask_for_models

SECONDS = 2.0  # for a list of models
UNSEEN = "(You cannot be shown this picture.)"
# How OpenAI, Mistral, DeepSeek, Groq, OpenRouter, Ollama, vLLM, llama.cpp and LM Studio say that a model does not see.
NO_PICTURES = re.compile(
    r"\bimages?\b.{0,40}\b(?:not|only)\b.{0,20}\b(?:support|enabl|allow|accept)|image_url is only supported"
    r"|not support\w*\b.{0,30}\bimages?\b|endpoints found that support image|at most 0 image|not a multimodal model"
    r"|mmproj|missing data required for image|unknown variant .?image_url|content\W* must be a string"
    r"|(?:does|is|do) not (?:\w+ ){0,3}(?:vision|multi-?modal)",
    re.IGNORECASE,
)


def content_of(message: Message) -> str | list[dict[str, Any]]:
    """Return the content to send: plain text without pictures, else parts with each picture after its label."""
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
    """Return the messages for a model that does not see: each picture is named and said not to be shown."""
    return [
        {**message, "content": _unseen(message["content"])}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def have_pictures(messages: Sequence[dict[str, Any]]) -> bool:
    return any(isinstance(message["content"], list) for message in messages)


def joined(first: Any, second: Any) -> Any:
    """Return two contents as one."""
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
    """Return whether the server's list says that this model sees; None if it does not say. Two seconds at most."""
    try:
        listed = ask_for_models(endpoint, seconds=SECONDS).json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        return None
    rows = [row for name in ("data", "models") for row in _list(listed, name) if isinstance(row, dict)]
    ours = [row for row in rows if endpoint.model in (row.get("id"), row.get("name"), row.get("model"))]
    return next((sees for row in ours if (sees := _sight_of(row)) is not None), None)


def _sight_of(row: dict[str, Any]) -> bool | None:
    """As OpenRouter, Mistral and llama.cpp say it."""
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
    """Return the parts as text, with each picture's label marked as not shown."""
    said: list[str] = []
    for part in parts:
        if part["type"] == "text":
            said.append(part["text"])
        else:
            said[-1] = f"{said[-1]} {UNSEEN}"
    return "\n\n".join(filter(None, said))


# Messages for strict chat templates: one system message, the first; then user and assistant in turn.

Body = dict[str, Any]  # a message as it is sent

# How the templates of Mistral, Gemma, Llama 2, Qwen 3.5 and others say so, through vLLM, llama.cpp, TGI and Ollama.
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
    """Return the messages for strict chat templates, with the same text in the same order. System text in between joins
    the next user message, and neighbours of one role become one message. Without ``keeps_system`` the first system text
    moves as well.
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
