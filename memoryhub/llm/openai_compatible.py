"""Clients for chat models and embedders on any server with the OpenAI API."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np
import openai
import openai.resources.chat.completions  # otherwise imported lazily, during the first answer
import openai.resources.embeddings

from memoryhub.llm.base import (
    Capabilities,
    Delta,
    Message,
    Tool,
    ToolChoice,
    Vectors,
    estimated_tokens,
    normalised,
)
from memoryhub.llm.errors import EMPTY, ModelBadReply, ModelCut, ModelError, ModelUnavailable
from memoryhub.llm.http_clients import Clients, Endpoint, reply_within, timeout_of
from memoryhub.llm.metering import Usage, guessed, report, report_embedding
from memoryhub.llm.openai_errors import (
    VENDOR_ERRORS,
    call_with_retries,
    delay_before_retry,
    embedder_error,
    hide_from_log,
    model_error,
)
from memoryhub.llm.openai_replies import (
    Chunk,
    StreamedAnswer,
    chunks_of,
    error_text,
    reported_usage,
    vectors_in_order,
    whole_reply,
    whole_text,
)
from memoryhub.llm.openai_requests import (
    NO_SYSTEM,
    STRICT,
    RawChat,
    body_of,
    fold,
    have_pictures,
    listed_vision,
    says_it_is_blind,
    without_pictures,
)
from memoryhub.llm.output_parsing import OutputParser, without_thoughts
from memoryhub.monitoring.tracing import Span, failed, model_call
from memoryhub.stored_messages import kept

DEFAULT_TIMEOUT_SECONDS = 60.0
# Error messages of Ollama, vLLM, llama.cpp and others for a model without tool support.
NO_TOOLS = re.compile(
    r"not support\w*\b.{0,30}\b(tool|function)s?\b|\btools?\b.{0,40}\bnot (?:be )?(?:support|allow)"
    r"|tool.choice|requires? .{0,10}jinja|tools? param",
    re.IGNORECASE,
)
OPTIONAL = ("temperature", "response_format", "stream_options")  # parameters that a call can omit
REFUSALS = {400, 404, 405, 415, 422, 500, 501}  # statuses that reject a parameter; llama.cpp sends 500
NOT_READY = kept("The model is not ready yet.", "Try again in a few seconds.")


class OpenAIChatModel:
    def __init__(
        self,
        endpoint: Callable[[], Endpoint | None],
        capabilities: Capabilities,
        *,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        not_ready: Callable[[], ModelUnavailable] = lambda: ModelUnavailable(NOT_READY),
    ) -> None:
        """Create a client that calls `endpoint` before each attempt. While that is None, it raises `not_ready()`."""
        self.capabilities = capabilities
        self._endpoint = endpoint
        self._timeout = timeout
        self._not_ready = not_ready
        self._clients = Clients()
        self._refused_parameters: set[str] = set()
        # The chat template; see memoryhub.llm.openai_requests.
        self._is_strict = self._takes_no_system = False
        self.sees = capabilities.sees
        self._asked_list = False
        self.raw = RawChat(self._ready_endpoint, self._clients, timeout)

    @property
    def name(self) -> str:
        endpoint = self._endpoint()
        return endpoint.model if endpoint else ""

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a limit on silence, which asyncio.timeout cannot express
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
    ) -> AsyncGenerator[Delta, None]:
        """Stream an answer piece by piece. Arguments and errors are documented at ``ChatModel.stream``."""
        request = _request(messages, max_tokens, temperature) | _offer(tools, tool_choice)
        request["stream_options"] = {"include_usage": True}
        limit = timeout or self._timeout
        attempt, deadline = 0, time.monotonic() + limit  # for all attempts; every piece extends it
        while True:
            answer = StreamedAnswer()
            endpoint, accepted = self._ready_endpoint(), self._accepted(request)
            shows_pictures = have_pictures(accepted["messages"])
            with model_call(endpoint.model) as call:
                try:
                    left = deadline - time.monotonic()
                    async with aclosing(self._texts(endpoint, accepted, answer, left)) as texts:
                        async for delta in texts:
                            deadline = time.monotonic() + limit
                            if self.sees is None and shows_pictures:
                                self.sees = True
                            yield delta
                    yield _last(answer)
                    return
                except (ModelCut, *VENDOR_ERRORS) as error:
                    if answer.finish_reason:  # the answer is complete, only the end of the stream is missing
                        yield _last(answer)
                        return
                    if self._learn_from(error, accepted):
                        continue
                    failure = _failure(error, endpoint, streaming=answer.has_begun)
                    left = deadline - time.monotonic()
                    delay = delay_before_retry(failure, attempt, left=left, after_silence=True)
                    if delay is None or answer.has_text:
                        raise failure from error
                    failed(call, failure)
                finally:
                    if answer.has_begun:
                        guess = replace(guessed(accepted["messages"], ""), tokens_out=answer.written)
                        report(answer.usage or guess, call)
            attempt += 1
            await asyncio.sleep(delay)

    async def _texts(
        self, endpoint: Endpoint, accepted: dict[str, Any], answer: StreamedAnswer, limit: float
    ) -> AsyncGenerator[Delta, None]:
        parser = OutputParser([tool["function"]["name"] for tool in accepted.get("tools", ())])
        client = self._clients.for_running_loop(endpoint)
        async with client.chat.completions.with_streaming_response.create(
            model=endpoint.model, stream=True, timeout=timeout_of(limit), **accepted
        ) as response:
            async for chunk in chunks_of(response.http_response):
                text, thought = answer.read(chunk), answer.thought
                if thought:
                    yield Delta("", thought=thought)
                if text and (delta := parser.feed(text)):
                    yield delta
        if delta := parser.end(answer):
            yield delta

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        json: bool = False,
    ) -> str:
        """Return the whole answer. Arguments and errors are documented at ``ChatModel.complete``."""
        request = _request(messages, max_tokens, temperature)
        if json:
            request["response_format"] = {"type": "json_object"}
        sent: dict[str, Any] = {}

        def ask(endpoint: Endpoint, call: Span, seconds: float) -> str:
            nonlocal sent
            sent = self._accepted(request)
            response = self._clients.complete(endpoint, seconds, model=endpoint.model, **sent)
            reply = whole_reply(response)
            report(reported_usage(reply.get("usage")) or _guess(sent, reply), call)
            text = without_thoughts(whole_text(reply))
            if not text.strip():
                raise ModelBadReply(EMPTY, detail="nothing but thoughts")
            return text

        return call_with_retries(
            self._ready_endpoint,
            ask,
            lambda error: self._learn_from(error, sent),
            _failure,
            limit=timeout or self._timeout,
        )

    async def aclose(self) -> None:
        """Close the connections of a client that is no longer needed."""
        await self._clients.aclose()

    def _ready_endpoint(self) -> Endpoint:
        endpoint = self._endpoint()
        if endpoint is None:
            raise self._not_ready()
        return endpoint

    def _accepted(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request without what this model has rejected so far: parameters, pictures or a role order."""
        accepted = {key: value for key, value in request.items() if key not in self._refused_parameters}
        if "max_tokens" in request and "max_tokens" not in accepted:
            accepted["max_completion_tokens"] = request["max_tokens"]
        if self.sees is False:
            accepted["messages"] = without_pictures(accepted["messages"])
        if self._is_strict or self._takes_no_system:
            accepted["messages"] = fold(accepted["messages"], keeps_system=not self._takes_no_system)
        return accepted

    def _learn_from(self, error: Exception, sent: dict[str, Any]) -> bool:
        """Remember what the model rejected, and return whether the request can be sent again without it.

        This can be an optional parameter, pictures, or the order of roles. Newer OpenAI models take
        max_completion_tokens instead of max_tokens, and no temperature; LM Studio has no `json_object` format; older
        servers report no usage of a stream; many models have no tools. Only the error shows this.
        """
        if not isinstance(error, openai.APIError) or isinstance(error, openai.APIConnectionError):
            return False
        text = error_text(error)
        if self._learn_roles(text, sent):
            return True
        if have_pictures(sent["messages"]) and says_it_is_blind(error):
            self.sees = False
            return True
        if isinstance(error, openai.APIStatusError) and error.status_code not in REFUSALS:
            return False
        if "max_completion_tokens" in text:
            refused = "max_tokens"
        else:
            refused = next((name for name in OPTIONAL if name in sent and name in text), "")
        if not refused and ("tools" in sent and (NO_TOOLS.search(text) or error.param == "tools")):
            self._refused_parameters.add("tool_choice")
            refused = "tools"
        if refused not in sent:
            return False
        self._refused_parameters.add(refused)
        return True

    def detect_vision(self) -> None:
        """Set ``sees`` from the server's list of models if it is unknown. Implements ``ChatModel.detect_vision``."""
        if self.sees is None and not self._asked_list:
            self._asked_list = True
            self.sees = listed_vision(self._ready_endpoint())

    def _learn_roles(self, message: str, sent: dict[str, Any]) -> bool:
        """Remember that the model is strict about roles, if the error shows it. Return whether ``fold`` may help."""
        none = bool(NO_SYSTEM.search(message))
        if not none and not STRICT.search(message):
            return False
        if fold(sent["messages"], keeps_system=not none) == sent["messages"]:
            return False
        self._takes_no_system |= none
        self._is_strict = True
        return True


def _failure(error: Exception, endpoint: Endpoint, *, streaming: bool = False) -> ModelError:
    return hide_from_log(model_error(error, streaming=streaming), endpoint)


def _request(
    messages: Sequence[Message], max_tokens: int | None, temperature: float | None
) -> dict[str, Any]:
    optional = {"max_tokens": max_tokens, "temperature": temperature}
    parameters = {name: value for name, value in optional.items() if value is not None}
    return {"messages": [body_of(message) for message in messages], **parameters}


def _offer(tools: Sequence[Tool], choice: ToolChoice) -> dict[str, Any]:
    if not tools:
        return {}
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in tools
    ]
    offer: dict[str, Any] = {"tools": [{"type": "function", "function": function} for function in functions]}
    return offer if choice == "auto" else {**offer, "tool_choice": choice}  # every server's default is "auto"


def _last(answer: StreamedAnswer) -> Delta:
    return Delta("", finish_reason=answer.finish(), tool_calls=answer.tool_calls)


def _guess(accepted: dict[str, Any], reply: Chunk) -> Usage:
    try:
        text = whole_text(reply)
    except ModelError:
        text = ""
    return guessed(accepted["messages"], text)


EMBEDDING_BATCH = 64
# Timeout of a whole call, retries included, since a server may send its vectors byte by byte.
EMBEDDING_TIMEOUT_SECONDS = 10.0
EMBEDDING_TIMEOUT_PER_TEXT_SECONDS = 0.5


class OpenAIEmbedder:
    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._clients = Clients()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, of the server's dimension. Implements ``Embedder.embed``."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        rows: list[list[float]] = []
        for start in range(0, len(texts), EMBEDDING_BATCH):
            rows += self._embed_batch(list(texts[start : start + EMBEDDING_BATCH]))
        return normalised(rows, count=len(texts))

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        return self.embed(texts)

    def _embed_batch(self, batch: list[str], **more: str) -> list[list[float]]:
        """Embed one batch, with retries. ``more``: fields of the request that are not part of OpenAI's API."""
        attempt = 0
        limit = EMBEDDING_TIMEOUT_SECONDS + EMBEDDING_TIMEOUT_PER_TEXT_SECONDS * len(batch)
        ends = time.monotonic() + limit
        while True:
            left = ends - time.monotonic()
            try:
                reply = reply_within(left, self._ask(batch, left, more))
                guess = Usage(sum(map(estimated_tokens, batch)), calls=1, estimated=1)
                report_embedding(self.name, reported_usage(getattr(reply, "usage", None)) or guess)
                return vectors_in_order(reply, len(batch))
            except VENDOR_ERRORS as error:
                failure = model_error(error)
                delay = delay_before_retry(failure, attempt, left=ends - time.monotonic())
                if delay is None:
                    raise embedder_error(failure) from error
            attempt += 1
            time.sleep(delay)

    async def _ask(self, batch: list[str], seconds: float, more: dict[str, str]) -> Any:
        return await self._clients.for_running_loop(self._endpoint).embeddings.create(
            model=self._endpoint.model,
            input=batch,
            encoding_format="float",  # not every server supports base64, the library's default
            timeout=timeout_of(seconds),
            extra_body=more,
        )


class BundledElsewhere(OpenAIEmbedder):
    """The bundled embedder in another process, which embeds questions in another way than stored texts."""

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of a question and its shorter variants. Implements ``Embedder.embed_question``."""
        return normalised(self._embed_batch(list(texts), input_type="question"), count=len(texts))
