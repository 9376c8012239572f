"""Usage is recorded from the provider or estimated, for every way of calling a model."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing

import pytest

from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.metering import Meter, Parts, Usage, metered
from memoryhub.llm.openai_compatible import OpenAIChatModel, OpenAIEmbedder
from tests.fakes.openai_server import HOLD, USAGE, Answer, Failure, Raw, ScriptedOpenAI

ASKED = [Message("user", "What is the capital of France?")]
BODY = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 320}]}]}
SAID = Usage(9, 0, 3, calls=1)


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI) -> OpenAIChatModel:
    endpoint = Endpoint(scripted_openai.base_url, scripted_openai.api_key, scripted_openai.model)
    able = Capabilities(has_tools=True, can_extract=True, context_tokens=16_384, local=True)
    return OpenAIChatModel(lambda: endpoint, able, timeout=5)


async def streamed(model: OpenAIChatModel, *, most: int = 1000) -> None:
    seen = 0
    async with aclosing(model.stream(ASKED)) as deltas:
        async for _ in deltas:
            seen += 1
            if seen == most:
                return


async def passed_on(model: OpenAIChatModel, body: dict[str, object]) -> list[dict[str, object]]:
    async with aclosing(model.raw.stream({**BODY, **body, "stream": True})) as chunks:
        return [chunk async for chunk in chunks]


WAYS: dict[str, Callable[[OpenAIChatModel], object]] = {
    "streamed": lambda model: asyncio.run(streamed(model)),
    "whole": lambda model: model.complete(ASKED),
    "passed on": lambda model: asyncio.run(passed_on(model, {})),
    "passed on whole": lambda model: model.raw.whole(BODY),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_provider_says_is_counted_once(model: OpenAIChatModel, way: str) -> None:
    assert USAGE["prompt_tokens"] == SAID.tokens_in
    WAYS[way](model)  # without a meter
    with metered() as meter:
        WAYS[way](model)
        WAYS[way](model)
    total = meter.total()
    assert total.usage == SAID + SAID
    meter.add(SAID)
    meter.forget(total)
    assert meter.total().usage == SAID, "what is written down is not counted again, what came meanwhile is"


@pytest.mark.parametrize("way", ["streamed", "passed on"])
def test_a_server_that_does_not_know_the_wish_is_asked_without_and_guessed_at(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI, way: str
) -> None:
    scripted_openai.script(Failure(400, "Unknown parameter: stream_options"), Answer("Paris" * 64))
    with metered() as meter:
        WAYS[way](model)
        WAYS[way](model)
    requests = scripted_openai.chat_requests[-3:]
    assert ["stream_options" in request.body for request in requests] == [True, False, False]
    usage = meter.total().usage
    assert usage.calls == usage.estimated == 2
    assert usage.tokens_in > 20 and 100 <= usage.tokens_out <= 130, "what was refused took nothing"


def test_what_is_stopped_in_the_middle_is_counted_as_far_as_it_came(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("Paris " * 50, HOLD, "and more"))
    with metered() as meter:
        asyncio.run(streamed(model, most=1))
    usage = meter.total().usage
    assert usage.estimated == 1 and 80 <= usage.tokens_out <= 110


def test_a_program_that_asks_for_no_usage_sees_none_and_it_is_counted(model: OpenAIChatModel) -> None:
    assert all(chunk["choices"] for chunk in asyncio.run(passed_on(model, {})))
    asked = asyncio.run(passed_on(model, {"stream_options": {"include_usage": True}}))
    assert asked[-1]["usage"] == USAGE


def test_a_providers_nonsense_is_kept_in_bounds(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    wild = {"prompt_tokens": -7, "completion_tokens": 10**40, "prompt_tokens_details": "none"}
    reply = {"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}], "usage": wild}
    scripted_openai.script(Raw(json.dumps(reply).encode(), "application/json"))
    with metered() as meter:
        model.complete(ASKED)
    assert meter.total().usage == Usage(0, 0, 10**9, calls=1)


def test_embeddings_go_to_who_counts_for_all_unless_somebody_asks_for_them(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, Usage]] = []
    monkeypatch.setattr(
        "memoryhub.llm.metering._embeddings", [lambda model, usage: heard.append((model, usage))]
    )
    endpoint = Endpoint(scripted_openai.base_url, scripted_openai.api_key, "vectors")
    embedder = OpenAIEmbedder(endpoint)
    with metered() as turn:
        embedder.embed(["x" * 320] * 65)
    assert turn.total().usage == Usage()
    assert [(model, usage.estimated) for model, usage in heard] == [("vectors", 1), ("vectors", 1)]
    assert sum(usage.tokens_in for _, usage in heard) == 65 * 104
    with metered(Meter(takes_embeddings=True)) as program:
        embedder.embed(["one"])
    assert program.total().usage.calls == 1 and len(heard) == 2


def test_parts_are_shares_of_what_the_provider_counted() -> None:
    assert Parts(25, 50, 0, 100).scaled_to(10) == Parts(2, 5, 0, 10)
    assert Parts().scaled_to(10) == Parts(whole=10)
    assert Parts(7, 0, 0, 3).scaled_to(9) == Parts(9, 0, 0, 9), "never more than there was"
