"""Tests of models: whether a server answers, and what a model can do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import httpx2
from django.conf import settings

from memoryhub.llm.base import Capabilities, Message, Tool
from memoryhub.llm.clients import Endpoint, ask_for_models
from memoryhub.llm.errors import (
    EmbedderError,
    ModelAddressRefused,
    ModelBadReply,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelTimeout,
)
from memoryhub.llm.registry import embedded_endpoint, embedded_trouble, get_embedder

if TYPE_CHECKING:
    from memoryhub.llm.openai_compatible import OpenAIChatModel

SECONDS = 2.0
MOST_LISTED = 1024 * 1024  # bytes of a list of models


def chat_model_trouble() -> str:
    """Return why the chat model cannot be used; empty if it can. Two seconds at most."""
    if settings.LLM_BASE_URL:
        return _trouble_at(Endpoint(settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_MODEL))
    if not settings.EMBEDDED_MODEL:
        return "none is set up"
    endpoint = embedded_endpoint()
    if endpoint is None:
        return (
            "the built-in one cannot be loaded"
            if embedded_trouble()
            else "the built-in one is still starting"
        )
    return _trouble_at(endpoint)


def embedder_trouble() -> str:
    """Return why the embedder cannot be used; empty if it can, or if none is wanted. The bundled one embeds a word."""
    if settings.EMBEDDING_BASE_URL:
        name = settings.EMBEDDING_MODEL
        return _trouble_at(Endpoint(settings.EMBEDDING_BASE_URL, settings.EMBEDDING_API_KEY, name))
    embedder = get_embedder()
    try:
        if embedder is not None:
            embedder.embed(["ready"])
    except EmbedderError as error:
        return error.code
    return ""


def _trouble_at(endpoint: Endpoint) -> str:
    """Every server of this API lists its models; one that does not know the address is there all the same."""
    try:
        status = ask_for_models(endpoint, seconds=SECONDS).status_code
    except httpx2.TimeoutException:
        return "no answer in time"
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return "cannot be reached"
    if status in {401, 403}:
        return "refuses the key"
    return f"answers with an error ({status})" if status >= 500 else ""


def list_models(endpoint: Endpoint, *, seconds: float) -> list[str] | None:
    """Return a server's model names; None if it does not answer, or not as this API does."""
    try:
        asked = ask_for_models(endpoint, seconds=seconds)
        if asked.status_code != 200 or len(asked.content) > MOST_LISTED:
            return None
        rows = asked.json()["data"] or []  # Ollama without a model says null
        return [row["id"] for row in rows if isinstance(row["id"], str)]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, RecursionError):
        return None


# Trying a model out: a few small requests that show what works, of what an administrator says that it can.

Outcome = Literal["works", "fails", "untried"]
STEPS = ("reachable", "key", "model", "streams", "tools", "json")
TRIAL_SECONDS = 30.0  # for all of it
SILENCE = 15.0  # until the next piece of one answer
ANSWER_TOKENS = 400  # room for a model that thinks before it says a word
HELLO = [Message("user", "Reply with the word ready and nothing else.")]
CALL = [Message("user", "What time is it in Paris? Call the tool get_time to find out.")]
CLOCK = Tool(
    "get_time",
    "The time of day in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
EXTRACT = [
    Message("system", 'Reply with a JSON object of the form {"fact": "…"} and nothing else.'),
    Message("user", "I moved to Lisbon in May."),
]


@dataclass
class Trial:
    """Outcome of each step, the first failure of each, and the duration in seconds."""

    outcomes: dict[str, Outcome] = field(default_factory=lambda: dict.fromkeys(STEPS, "untried"))
    errors: dict[str, ModelError] = field(default_factory=dict)
    first_piece: float | None = None
    seconds: float = 0.0

    @property
    def answers(self) -> bool:
        """Return whether the model can chat, apart from tools and JSON."""
        return self.outcomes["streams"] == "works"

    def fails(self, step: str, error: ModelError) -> None:
        self.outcomes[step], self.errors[step] = "fails", error


def try_model(endpoint: Endpoint, capabilities: Capabilities) -> Trial:
    """Ask it for a word, a tool call and a JSON object. Blocks for half a minute at the most; raises nothing."""
    return asyncio.run(_try(endpoint, capabilities))


async def _try(endpoint: Endpoint, capabilities: Capabilities) -> Trial:
    trial, began = Trial(), time.monotonic()
    from memoryhub.llm.openai_compatible import OpenAIChatModel  # slow to import

    model = OpenAIChatModel(lambda: endpoint, capabilities, timeout=SILENCE)
    try:
        async with asyncio.timeout(TRIAL_SECONDS):
            await _hello(trial, model, began)
            if trial.answers:
                await _step(trial, "tools", _calls_a_tool(model))
                await _step(trial, "json", _writes_json(model))
    except TimeoutError:  # the steps that were not reached stay untried
        if trial.first_piece is not None:  # slow, but a chat can be held with it
            trial.outcomes |= dict.fromkeys(STEPS[: STEPS.index("streams") + 1], "works")
        trial.fails(next(step for step in STEPS if trial.outcomes[step] == "untried"), ModelTimeout())
    finally:
        await model.aclose()
    trial.seconds = time.monotonic() - began
    return trial


async def _hello(trial: Trial, model: OpenAIChatModel, began: float) -> None:
    """Send the first request, whose reply tells the most about how far a call comes."""
    try:
        async with aclosing(model.stream(HELLO, max_tokens=ANSWER_TOKENS)) as deltas:
            async for delta in deltas:
                if delta.text and trial.first_piece is None:
                    trial.first_piece = time.monotonic() - began
    except ModelError as error:
        step = _stopped_at(error, trial.first_piece is not None)
        for reached in STEPS[: STEPS.index(step)]:
            trial.outcomes[reached] = "works"
        trial.fails(step, error)
        return
    for reached in STEPS[: STEPS.index("streams") + 1]:
        trial.outcomes[reached] = "works"


def _stopped_at(error: ModelError, has_begun: bool) -> str:
    if isinstance(error, ModelRefused):
        return "key"
    if isinstance(error, ModelNotFound):
        return "model"
    if isinstance(error, ModelAddressRefused):
        return "reachable"
    # What was reached and let in says something about the request; what was not says nothing at all.
    return "streams" if has_begun or not error.retryable or isinstance(error, ModelBadReply) else "reachable"


async def _step(trial: Trial, step: str, tried: Coroutine[Any, Any, bool]) -> None:
    try:
        trial.outcomes[step] = "works" if await tried else "fails"
    except ModelError as error:
        trial.fails(step, error)


async def _calls_a_tool(model: OpenAIChatModel) -> bool:
    calls: tuple[Any, ...] = ()
    async with aclosing(model.stream(CALL, max_tokens=ANSWER_TOKENS, tools=[CLOCK])) as deltas:
        async for delta in deltas:
            calls = delta.tool_calls or calls
    return any(call.name == CLOCK.name and _object(call.arguments) is not None for call in calls)


async def _writes_json(model: OpenAIChatModel) -> bool:
    reply = await asyncio.to_thread(
        model.complete, EXTRACT, max_tokens=ANSWER_TOKENS, temperature=0.0, json=True
    )
    text = reply.strip().removeprefix("```json").removesuffix("```")
    return isinstance((_object(text) or {}).get("fact"), str)


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
