"""Messages in the forms that servers accept, and forwarding of requests from clients of the OpenAI-compatible API.

The request body is forwarded with few changes (model, inserted system messages, a request for usage). The reply is only
checked to be a chat completion.
"""

import asyncio
import base64
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import INSERTED, Message
from memoryhub.llm.errors import ModelBadReply, ModelBadRequest, ModelError, ModelUnavailable
from memoryhub.llm.http_clients import Clients, Endpoint, ask_for_models, timeout_of
from memoryhub.llm.metering import Usage, guessed, report
from memoryhub.llm.openai_errors import (
    VENDOR_ERRORS,
    call_with_retries,
    delay_before_retry,
    hide_from_log,
    model_error,
)
from memoryhub.llm.openai_replies import chunks_of, error_text, reported_usage, whole_reply
from memoryhub.monitoring.tracing import Span, failed, model_call

Body = dict[str, Any]  # a JSON object of the API
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


def body_of(message: Message) -> Body:
    """Return the message as a JSON object for the API."""
    body: Body = {"role": message.role, "content": _content_of(message)}
    if message.tool_calls:
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _content_of(message: Message) -> str | list[Body]:
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


def without_pictures(messages: Sequence[Body]) -> list[Body]:
    """Return the messages for a model without vision: labels instead of pictures, marked as not shown."""
    return [
        {**message, "content": _unseen(message["content"])}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def have_pictures(messages: Sequence[Body]) -> bool:
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


def listed_vision(endpoint: Endpoint) -> bool | None:
    """Return whether the model sees pictures, by the server's list of models; None if unknown. Takes at most 2 s."""
    try:
        listed = ask_for_models(endpoint, seconds=SECONDS).json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        return None
    rows = [row for name in ("data", "models") for row in _list(listed, name) if isinstance(row, dict)]
    ours = [row for row in rows if endpoint.model in (row.get("id"), row.get("name"), row.get("model"))]
    return next((sees for row in ours if (sees := _vision_of(row)) is not None), None)


def _vision_of(row: Body) -> bool | None:
    """Return whether a listed model sees pictures, as OpenRouter, Mistral and llama.cpp say it; None if unknown."""
    abilities = row.get("capabilities")
    if isinstance(abilities, dict) and isinstance(abilities.get("vision"), bool):
        return bool(abilities["vision"])
    takes = _list(row.get("architecture"), "input_modalities")
    if takes:
        return "image" in takes
    sees = isinstance(abilities, list) and {"multimodal", "vision"} & set(map(str, abilities))
    return True if sees else None


def _list(container: Any, name: str) -> list[Any]:
    value = container.get(name) if isinstance(container, dict) else None
    return value if isinstance(value, list) else []


def _text(text: str) -> Body:
    return {"type": "text", "text": text}


def _unseen(parts: Sequence[Body]) -> str:
    """Return a message's parts as text, with each picture's label marked as not shown."""
    texts: list[str] = []
    for part in parts:
        if part["type"] == "text":
            texts.append(part["text"])
        else:
            texts[-1] = f"{texts[-1]} {UNSEEN}"
    return "\n\n".join(filter(None, texts))


# Messages for strict chat templates: one system message at the start, then user and assistant messages in turn.

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


# Servers whose error messages may be passed on. Internal servers are excluded, since only we may call them.
TELLABLE = (AddressRange.CONFIGURED, AddressRange.PUBLIC)
CLOSED = "The text has a character that cannot be sent."


@dataclass
class RawChat:
    """A client for raw chat completions. Its flags are learned from errors."""

    endpoint: Callable[[], Endpoint]  # called before every attempt; raises ModelUnavailable if there is none
    clients: Clients
    timeout: float
    is_strict: bool = False  # messages marked INSERTED must be merged into the next message
    is_silent: bool = False  # the server rejects ``stream_options``, which request a stream's usage

    def whole(self, body: Body) -> Body:
        """Return the answer to a request without streaming. Blocks. Raises a ModelError if the call fails."""

        def ask(endpoint: Endpoint, call: Span, seconds: float) -> Body:
            sent = self._options(self._sent(body, endpoint))
            response = self.clients.complete(endpoint, seconds, **sent)
            answer = whole_reply(response)
            if not isinstance(answer.get("choices"), list):
                raise ModelBadReply(detail=f"no chat completion: {str(answer)[:200]}")
            usage = reported_usage(answer.get("usage"))
            report(usage or guessed(body["messages"], _text_in(answer, "message")), call)
            return answer

        return call_with_retries(
            self.endpoint, ask, lambda error: self._learns_from(error, body), _failure, limit=self.timeout
        )

    async def stream(self, body: Body) -> AsyncGenerator[Body, None]:
        """Stream an answer: yield its chunks until the model ends it or the caller closes the generator.

        It is retried only before the first chunk. Raises a ModelError, possibly after some chunks.
        """
        attempt, deadline = 0, time.monotonic() + self.timeout
        while True:
            endpoint = self.endpoint()
            usage: Usage | None = None
            pieces: list[str] = []  # a text, maybe empty, of each chunk
            with model_call(endpoint.model) as call:
                try:
                    client = self.clients.for_running_loop(endpoint)
                    sent = self._sent(body, endpoint)
                    if not self.is_silent:
                        sent.setdefault("stream_options", {"include_usage": True})
                    async with client.chat.completions.with_streaming_response.create(
                        **self._options(sent), timeout=timeout_of(deadline - time.monotonic()), stream=True
                    ) as response:
                        async for chunk in chunks_of(response.http_response):
                            if not isinstance(chunk.get("choices"), list):
                                continue
                            usage = reported_usage(chunk.get("usage")) or usage
                            pieces.append(_text_in(chunk, "delta"))
                            has_only_usage = chunk.get("usage") and not chunk["choices"]
                            if not has_only_usage or "stream_options" in body:
                                yield chunk
                    if not pieces:
                        raise ModelBadReply(detail="the reply was no stream of events")
                    return
                except VENDOR_ERRORS as error:
                    if not pieces and self._learns_from(error, body):
                        continue
                    failure = _failure(error, endpoint, streaming=bool(pieces))
                    left = deadline - time.monotonic()
                    delay = None if pieces else delay_before_retry(failure, attempt, left=left)
                    if delay is None:
                        raise failure from error
                    failed(call, failure)
                finally:
                    if pieces:
                        report(usage or guessed(body["messages"], "".join(pieces)), call)
            attempt += 1
            await asyncio.sleep(delay)

    def _options(self, sent: Body) -> Body:
        """Return the library's arguments. Fields other than model and messages go unchanged into ``extra_body``.

        A ``timeout`` in the client's request is dropped: it is an argument of the library, not a field of the API.
        """
        known = {"model": sent["model"], "messages": sent["messages"]}
        rest = {name: value for name, value in sent.items() if name not in known and name != "timeout"}
        return known | {"extra_body": rest}

    def _sent(self, body: Body, endpoint: Endpoint) -> Body:
        return {**body, "model": endpoint.model, "messages": _placed(body["messages"], merge=self.is_strict)}

    def _learns_from(self, error: Exception, body: Body) -> bool:
        """Remember what of ours the server rejected, and return whether the request can be sent again without it."""
        text = error_text(error)
        if isinstance(error, openai.APIError) and "stream_options" in text:
            was_ours = "stream_options" not in body and not self.is_silent
            self.is_silent = self.is_silent or was_ours
            return was_ours
        refused = isinstance(error, openai.APIError) and (STRICT.search(text) or NO_SYSTEM.search(text))
        if not refused or self.is_strict or not any(INSERTED in message for message in body["messages"]):
            return False
        self.is_strict = True
        return True


def _text_in(reply: Body, part: str) -> str:
    """Return the text of all choices of a reply. ``part`` is "message" or "delta"."""
    parts = (choice.get(part) for choice in reply["choices"] if isinstance(choice, dict))
    texts = (each.get("content") for each in parts if isinstance(each, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _placed(messages: list[Body], *, merge: bool) -> list[Body]:
    placed: list[Body] = []
    waiting: list[str] = []
    for message in messages:
        if INSERTED not in message:
            if waiting:
                content = joined("\n\n".join(waiting), message.get("content") or "")
                message = {**message, "content": content}
            placed.append(message)
            waiting = []
        elif merge:
            waiting.append(message["content"])
        else:
            placed.append({name: value for name, value in message.items() if name != INSERTED})
    return placed


def _failure(error: Exception, endpoint: Endpoint, *, streaming: bool = False) -> ModelError:
    """Convert an error to a ModelError. Tell an API client what the server said about a bad request."""
    if isinstance(error, UnicodeError):
        return ModelBadRequest(CLOSED)
    failure = model_error(error, streaming=streaming)
    # llama.cpp refuses pictures with status 500.
    if isinstance(failure, ModelUnavailable) and says_it_is_blind(error):
        failure = ModelBadRequest(detail=failure.detail)
    if isinstance(failure, ModelBadRequest) and endpoint.address_range in TELLABLE and failure.detail:
        reason = failure.detail.replace(endpoint.api_key or "\0", "…").strip()
        failure = ModelBadRequest(f"{ModelBadRequest.sentence} It said: {reason}")
        if isinstance(error, openai.APIError):
            failure.param, failure.server_code = error.param, error.code
    return hide_from_log(failure, endpoint)
