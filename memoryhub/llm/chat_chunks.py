"""A reader of streamed chat completions from any OpenAI-compatible server.

Servers send different things besides the text: events without data (`retry:`, pings, comments after an id), usage or
cost after the last word, `choices: null`, content as a list of parts, a whole completion instead of a stream, and
errors in many forms, also with status 200. This module converts all of them to plain chunks or raises an
`openai.APIError`.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2
import openai

Chunk = dict[str, Any]
MOST_LINE = 8 * 1024 * 1024  # characters of one event
DRAIN_SECONDS = 1.0
MOST_SAID = 2000  # characters of an error body that are used


async def chunks_of(response: httpx2.Response) -> AsyncIterator[Chunk]:
    """Yield the chunks of a streamed reply as they arrive, in the form of `normal_chunk`.

    Raises openai.APIError if the server reports a failure, and ValueError if JSON is cut off. After a choice with a
    finish_reason the answer is complete, and such errors are ignored.
    """
    is_complete = False
    events = _events(response)
    async for text in events:
        if text.strip() == "[DONE]":
            await _drain(events)
            return
        try:
            chunk = _parsed(text, response)
        except (openai.APIError, ValueError):
            if is_complete:
                continue
            raise
        if chunk is not None:
            is_complete = is_complete or _has_ended(chunk)
            yield chunk


async def _events(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the data of each server-sent event. A line of bare JSON counts as data."""
    data: list[str] = []
    async for line in _lines(response):
        name, _, value = line.partition(":")
        if not line:
            yield "\n".join(data)
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
        elif name not in {"", "event", "id", "retry"}:  # "error: …" of llama.cpp, or JSON
            data.append(line)
    yield "\n".join(data)


def checked(reply: object, response: httpx2.Response | None = None) -> Chunk:
    """Return an unstreamed reply in the form of `normal_chunk`. Raises openai.APIError if its body is an error."""
    _raise_error(reply, response)
    return normal_chunk(reply) if isinstance(reply, dict) else {}


def normal_chunk(reply: Chunk) -> Chunk:
    """Return a reply with `choices` as a list, and with content that came as a list of parts joined to a string."""
    choices = reply.get("choices")
    if choices is None and "choices" in reply:
        choices = []
    if not isinstance(choices, list):
        return reply
    return {
        **reply,
        "choices": [_normal_choice(each) if isinstance(each, dict) else each for each in choices],
    }


def _normal_choice(choice: Chunk) -> Chunk:
    for part in ("delta", "message"):
        if isinstance(body := choice.get(part), dict) and isinstance(body.get("content"), list):
            choice = {**choice, part: {**body, "content": _text_of(body["content"])}}
    return choice


def _text_of(parts: list[Any]) -> str:
    """Join content that came as a list of parts to a string."""
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def error_text(error: Exception) -> str:
    """Return everything that the server sent about a failure, in any format.

    The library keeps only one format's message.
    """
    if not isinstance(error, openai.APIError):
        return str(error)
    said = _said(error.body)
    return f"{error.code or ''} {error.type or ''} {error.message} {said if said not in error.message else ''}".strip()


def _said(body: object) -> str:
    if isinstance(body, str):
        return body[:MOST_SAID]
    return "" if body is None else json.dumps(body, ensure_ascii=False, default=str)[:MOST_SAID]


def _has_ended(chunk: Chunk) -> bool:
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and bool(first.get("finish_reason"))


async def _drain(events: AsyncIterator[str]) -> None:
    """Read the remaining events for at most a second, so that the connection can be reused."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass


async def _lines(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the lines of a body, split at LF, CR and CRLF only, since text may contain other line separators."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    async for part in response.aiter_bytes():
        rest += decoder.decode(part)
        if len(rest) > MOST_LINE:
            raise ValueError("an event without end")
        if "\n" not in rest and "\r" not in rest:
            continue
        end = "\r" if rest.endswith("\r") else ""  # an LF may follow
        *lines, rest = rest.removesuffix(end).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rest += end
        for line in lines:
            yield line
    for line in (rest + decoder.decode(b"", final=True)).rstrip("\r").split("\n"):
        yield line


def _parsed(text: str, response: httpx2.Response) -> Chunk | None:
    """Parse the data of an event into a chunk; None for pings, comments and the end marker."""
    text = text.strip()
    if not text or text == "[DONE]":
        return None
    if text[0] not in "{[":
        if text[:5].lower() == "error":
            raise _api_error(_json_or_text(text[5:].lstrip(": ")), response)
        return None  # a ping or a comment
    try:
        reply = json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    _raise_error(reply, response)
    if not isinstance(reply, dict):
        return None
    return _as_stream(normal_chunk(reply))


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _as_stream(reply: Chunk) -> Chunk:
    """Convert a whole completion to a chunk of a stream. Other chunks stay unchanged."""
    choices = reply.get("choices")
    if not isinstance(choices, list):
        return reply
    return {**reply, "choices": [_streamed(each) for each in choices]}


def _streamed(choice: Any) -> Any:
    whole = isinstance(choice, dict) and isinstance(choice.get("message"), dict) and not choice.get("delta")
    return {**choice, "delta": choice["message"]} if whole else choice


def _raise_error(reply: object, response: httpx2.Response | None) -> None:
    first = reply[0] if isinstance(reply, list) and reply else reply
    if not isinstance(first, dict) or first.get("choices"):
        return
    error = first.get("error") or (first.get("detail") if "choices" not in first else None)
    if not error and first.get("object") == "error":
        error = first
    if error:
        raise _api_error(error, response)


def _api_error(error: object, response: httpx2.Response | None) -> openai.APIError:
    """Return a reported failure as an openai.APIStatusError if it names an HTTP status, otherwise as an APIError."""
    message = error.get("message") if isinstance(error, Mapping) else error
    request = response.request if response is not None else httpx2.Request("POST", "http://model/")
    failure = openai.APIError(message if isinstance(message, str) else _said(error), request, body=error)
    status = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    if isinstance(status, int | str) and str(status).isdecimal() and 400 <= int(status) <= 599:
        answer = httpx2.Response(int(status), request=request)
        return openai.APIStatusError(failure.message, response=answer, body=error)
    return failure
