"""Checks of models: whether a server responds, and what a model can do."""

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
from memoryhub.llm.errors import (
    EmbedderError,
    ModelAddressRefused,
    ModelBadReply,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelTimeout,
)
from memoryhub.llm.http_clients import Endpoint, ask_for_models
from memoryhub.llm.registry import embedded_endpoint, embedded_trouble, get_embedder

if TYPE_CHECKING:
    from memoryhub.llm.openai_compatible import OpenAIChatModel

SECONDS = 2.0
MOST_LISTED = 1024 * 1024  # limit of a list of models, in bytes


def chat_model_trouble() -> str:
    """Return why the chat model cannot be used; empty if it can. Takes two seconds at most."""
    if settings.LLM_BASE_URL:
        return _trouble_at(Endpoint(settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_MODEL))
    if not settings.EMBEDDED_MODEL:
        return "none is set up"
    endpoint = embedded_endpoint()
    if endpoint is None:
        state = "cannot be loaded" if embedded_trouble() else "is still starting"
        return f"the built-in one {state}"
    return _trouble_at(endpoint)


def embedder_trouble() -> str:
    """Return why the embedder cannot be used, after a test with one word; empty if it can, or if none is configured."""
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
    """Return why a server cannot be used; empty if it can. Requests its list of models; status 404 counts as usable."""
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
    """Return the names of a server's models; None if it does not respond or sends no valid list."""
    try:
        response = ask_for_models(endpoint, seconds=seconds)
        if response.status_code != 200 or len(response.content) > MOST_LISTED:
            return None
        rows = response.json()["data"] or []  # Ollama without a model returns null
        return [row["id"] for row in rows if isinstance(row["id"], str)]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, RecursionError):
        return None


# Trial of a model: a few small requests that show which of its configured capabilities work.

Outcome = Literal["works", "fails", "untried"]
STEPS = ("reachable", "key", "model", "streams", "tools", "json")
TRIAL_SECONDS = 30.0  # limit of the whole trial
SILENCE = 15.0  # timeout until the next piece of an answer
ANSWER_TOKENS = 400  # enough for a model that reasons before it answers
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
    """Result of a model's test: outcome and first error of each step, and durations in seconds."""

    outcomes: dict[str, Outcome] = field(default_factory=lambda: dict.fromkeys(STEPS, "untried"))
    errors: dict[str, ModelError] = field(default_factory=dict)
    first_piece: float | None = None
    seconds: float = 0.0

    @property
    def answers(self) -> bool:
        """Return whether the model can chat, regardless of tools and JSON."""
        return self.outcomes["streams"] == "works"

    def works_before(self, step: str) -> None:
        self.outcomes |= dict.fromkeys(STEPS[: STEPS.index(step)], "works")

    def fails(self, step: str, error: ModelError) -> None:
        self.outcomes[step], self.errors[step] = "fails", error


def try_model(endpoint: Endpoint, capabilities: Capabilities) -> Trial:
    """Test a model with requests for a word, a tool call and a JSON object, for up to 30 seconds. Raises nothing."""
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
        if trial.first_piece is not None:  # slow, but usable for a chat
            trial.works_before("tools")
        trial.fails(next(step for step in STEPS if trial.outcomes[step] == "untried"), ModelTimeout())
    finally:
        await model.aclose()
    trial.seconds = time.monotonic() - began
    return trial


async def _hello(trial: Trial, model: OpenAIChatModel, began: float) -> None:
    """Send the first request, and derive the outcome of the first four steps from its reply or error."""
    try:
        async with aclosing(model.stream(HELLO, max_tokens=ANSWER_TOKENS)) as deltas:
            async for delta in deltas:
                if delta.text and trial.first_piece is None:
                    trial.first_piece = time.monotonic() - began
    except ModelError as error:
        step = _stopped_at(error, trial.first_piece is not None)
        trial.works_before(step)
        trial.fails(step, error)
    else:
        trial.works_before("tools")


def _stopped_at(error: ModelError, has_begun: bool) -> str:
    for kind, step in ((ModelRefused, "key"), (ModelNotFound, "model"), (ModelAddressRefused, "reachable")):
        if isinstance(error, kind):
            return step
    # Any error that only a reached server can return means that the steps before "streams" work.
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
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
