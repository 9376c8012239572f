"""Reading of streams and replies of OpenAI-compatible servers, whose JSON the OpenAI library does not validate."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from memoryhub.llm import errors
from memoryhub.llm.base import BYTES_PER_TOKEN, ToolCall
from memoryhub.llm.metering import Usage

if TYPE_CHECKING:
    import openai

# Servers send different things besides the text: events without data (`retry:`, pings, comments after an id), usage or
# cost after the last word, `choices: null`, content as a list of parts, a whole completion instead of a stream, and
# errors in many forms, also with status 200. This module converts all of them to plain chunks or raises an
# `openai.APIError`. The library is slow to import, so only functions import it.

Chunk = dict[str, Any]
MOST_LINE = 8 * 1024 * 1024  # characters of one event
MOST_SAID = 2000  # characters of an error body that are used


async def chunks_of(response: httpx2.Response) -> AsyncIterator[Chunk]:
    """Yield the chunks of a streamed reply as they arrive, in the form of `_normalise`.

    Raises openai.APIError if the server reports a failure, and ValueError if JSON is cut off. After a choice with a
    finish_reason the answer is complete, and such errors are ignored.
    """
    import openai

    is_complete = False
    events = _events(response)
    async for text in events:
        if text.strip() == "[DONE]":
            with suppress(TimeoutError):  # read the rest for a second, so that the connection can be reused
                async with asyncio.timeout(1.0):
                    async for _ in events:
                        pass
            return
        try:
            chunk = _parsed(text, response)
        except (openai.APIError, ValueError):
            if is_complete:
                continue
            raise
        if chunk is not None:
            is_complete = is_complete or any(each.get("finish_reason") for each in _choices(chunk)[:1])
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


def whole_reply(response: httpx2.Response) -> Chunk:
    """Return an unstreamed reply in the form of `_normalise`. Raises openai.APIError if its body is an error."""
    reply = response.json()
    _raise_error(reply, response)
    return _normalise(reply) if isinstance(reply, dict) else {}


def _normalise(reply: Chunk) -> Chunk:
    """Make `choices` a list, and each content a string, in place. Some servers send null, or a list of parts."""
    if "choices" in reply and reply["choices"] is None:
        reply["choices"] = []
    for choice in _choices(reply):
        for part in ("delta", "message"):
            if isinstance(body := choice.get(part), dict) and isinstance(body.get("content"), list):
                body["content"] = _text_of(body["content"])
    return reply


def _choices(reply: Chunk) -> list[Chunk]:
    choices = reply.get("choices")
    return [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []


def _text_of(parts: list[Any]) -> str:
    """Return the text of a content that was sent as a list of parts."""
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def error_text(error: Exception) -> str:
    """Return everything that the server sent about a failure, since the library keeps only one format's message."""
    import openai

    if not isinstance(error, openai.APIError):
        return str(error)
    body_text = _said(error.body)
    more = body_text if body_text not in error.message else ""
    return f"{error.code or ''} {error.type or ''} {error.message} {more}".strip()


def _said(body: object) -> str:
    if isinstance(body, str):
        return body[:MOST_SAID]
    return "" if body is None else json.dumps(body, ensure_ascii=False, default=str)[:MOST_SAID]


async def _lines(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the lines of a body. Raises ValueError if a line is longer than MOST_LINE characters.

    Lines end at LF, CR and CRLF only, since text may contain other line separators.
    """
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
    for choice in _choices(_normalise(reply)):
        if isinstance(choice.get("message"), dict) and not choice.get("delta"):  # a whole completion
            choice["delta"] = choice["message"]
    return reply


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _raise_error(reply: object, response: httpx2.Response) -> None:
    first = reply[0] if isinstance(reply, list) and reply else reply
    if not isinstance(first, dict) or first.get("choices"):
        return
    error = first.get("error") or (first.get("detail") if "choices" not in first else None)
    if not error and first.get("object") == "error":
        error = first
    if error:
        raise _api_error(error, response)


def _api_error(error: object, response: httpx2.Response) -> openai.APIError:
    """Return a reported failure as an openai.APIStatusError if it names an HTTP status, otherwise as an APIError."""
    import openai

    message = error.get("message") if isinstance(error, Mapping) else error
    message = message if isinstance(message, str) else _said(error)
    status = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    if isinstance(status, int | str) and str(status).isdecimal() and 400 <= int(status) <= 599:
        answer = httpx2.Response(int(status), request=response.request)
        return openai.APIStatusError(message, response=answer, body=error)
    return openai.APIError(message, response.request, body=error)


MOST_CALLS = 64  # per reply
MOST_ARGUMENTS = 200_000  # limit of one call's arguments, in characters
MOST_TEXT = 1_000_000  # limit of one answer, in characters
MOST_TOKENS = 10**9  # limit of the tokens that a server reports for one call
FENCED = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
THOUGHT_FIELDS = ("reasoning_content", "reasoning")  # DeepSeek, vLLM, llama.cpp; OpenRouter, Ollama


def reported_usage(usage: Any) -> Usage | None:
    """Return the plausible usage that a provider reports, as JSON or as an object; None if it reports none."""
    read, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not read and not written:
        return None
    cached = _count(_part(usage, "prompt_tokens_details"), "cached_tokens")
    cached = cached or _count(usage, "prompt_cache_hit_tokens")  # DeepSeek
    thought = _count(_part(usage, "completion_tokens_details"), "reasoning_tokens")
    return Usage(read, min(cached, read), written, min(thought, written), calls=1)


def _part(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _count(of: Any, name: str) -> int:
    value = _part(of, name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, min(value, MOST_TOKENS))


class StreamedAnswer:
    """The part of a streamed answer that has been read."""

    def __init__(self) -> None:
        self.has_begun = False
        self.has_text = self.has_thought = False
        self.thought = ""  # reasoning in the last chunk, if the server sends it separately from the text
        self.finish_reason: str | None = None
        self.usage: Usage | None = None  # as the server reports it, at the end or with each chunk
        self._calls: list[_CallSoFar] = []
        self._length = 0

    def read(self, chunk: Chunk) -> str:
        """Read a chunk and return its text, if any. Raises ModelBadReply or, if the model refuses, ContentFiltered."""
        self.thought = ""
        self.usage = reported_usage(chunk.get("usage")) or self.usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        self.has_begun = True
        delta = choices[0].get("delta") or {} if isinstance(choices[0], dict) else None
        if not isinstance(delta, dict):
            raise errors.ModelBadReply(detail=f"a chunk without a delta: {str(chunk)[:100]}")
        text = _text_in(delta)
        thought = next(filter(None, (delta.get(name) for name in THOUGHT_FIELDS)), "")
        self.thought = thought if isinstance(thought, str) else ""
        for fragment in _as_list(delta.get("tool_calls")):
            self._read_call(fragment)
        self.finish_reason = choices[0].get("finish_reason") or self.finish_reason
        self.has_thought = self.has_thought or bool(self.thought)
        self.has_text = self.has_text or bool(text)
        self._length += len(text) + len(self.thought)
        if self._length > MOST_TEXT:
            raise errors.ModelBadReply(detail="an answer without end")
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
            raise errors.ModelBadReply(detail=f"a tool call whose arguments are {type(part).__name__}")
        call = self._call_of(fragment if isinstance(fragment, dict) else {}, name)
        if name != call.name:
            call.name += name
        call.arguments += part
        if len(call.arguments) > MOST_ARGUMENTS:
            raise errors.ModelBadReply(detail="a tool call with arguments without end")

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
                raise errors.ModelBadReply(detail="more tool calls than anybody needs")
            call = _CallSoFar(index, call_id, "")
            self._calls.append(call)
        call.id = call.id or call_id
        return call

    def finish(self) -> str:
        """Return the finish reason. Raises ModelCut if none came, ContentFiltered, or ModelBadReply without text."""
        if not self.has_begun:
            raise errors.ModelBadReply(detail="the reply was no stream of events")
        if self.finish_reason is None:
            raise errors.ModelCut(detail="the stream ended without a finish_reason")
        if self.finish_reason == "length" and self.has_thought and not self.has_text and not self._calls:
            raise errors.ModelBadReply(errors.ONLY_THOUGHTS, detail="the limit was reached while thinking")
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


def _text_in(message: Chunk) -> str:
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise errors.ModelBadReply(detail=f"content is {type(text).__name__}")
    if message.get("refusal"):
        raise errors.ContentFiltered(detail=str(message["refusal"]))
    return text


def _check_end(finish_reason: str | None, has_text: bool) -> None:
    if finish_reason == "content_filter":
        raise errors.ContentFiltered()
    if not has_text:
        raise errors.ModelBadReply(errors.EMPTY, detail=f"no text, finish_reason {finish_reason}")


def whole_text(reply: Chunk) -> str:
    """Return an unstreamed completion's text. Raises ContentFiltered or, if it is invalid or empty, ModelBadReply."""
    choice = next(iter(_choices(reply)), {})
    message = choice.get("message")
    if not isinstance(message, dict):
        raise errors.ModelBadReply(detail=f"no chat completion: {str(reply)[:200]}")
    text = _text_in(message)
    if choice.get("finish_reason") == "length" and not text and any(map(message.get, THOUGHT_FIELDS)):
        raise errors.ModelBadReply(errors.ONLY_THOUGHTS, detail="the limit was reached while thinking")
    _check_end(choice.get("finish_reason"), bool(text))
    return text


def vectors_in_order(reply: Any, count: int) -> list[list[float]]:
    """Return a reply's vectors in the order of the texts. Raises EmbedderBadReply unless there is one for each."""
    try:
        by_index = {item.index: item.embedding for item in reply.data}
        returned = len(reply.data)
    except (AttributeError, TypeError) as error:
        raise errors.EmbedderBadReply(detail=f"no embeddings: {str(reply)[:200]}") from error
    if returned != count or set(by_index) != set(range(count)):
        raise errors.EmbedderBadReply(detail=f"{returned} vectors for {count} texts, or numbered wrongly")
    return [by_index[index] for index in range(count)]
