"""The same calls on the scripted server and on the real embedded one, to verify the fake."""

import asyncio
from contextlib import aclosing

import pytest

from memoryhub.llm import errors, registry
from memoryhub.llm.base import ChatModel, Message, Tool, ToolCall, ToolChoice
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import Answer, Failure, Received, Reply

QUESTION = [
    Message("system", "You are a helpful assistant."),
    Message("user", "Write one sentence about the sea."),
]


def answer_like_a_server(request: Received) -> Reply:
    if sum(len(message["content"]) for message in request.messages) > 10_000:
        return Failure(400, "the request exceeds the available context size")
    limit = request.body.get("max_tokens", 50)
    return Answer(*["word "] * min(limit, 50), finish_reason="length" if limit < 50 else "stop")


@pytest.fixture(params=["scripted", pytest.param("embedded", marks=pytest.mark.local_model)])
def model(request: pytest.FixtureRequest) -> ChatModel:
    if request.param == "scripted":
        request.getfixturevalue("scripted_model").respond = answer_like_a_server
    else:
        request.getfixturevalue("local_model")
    return registry.get_chat_model()


async def test_streams_several_pieces_and_ends_with_a_reason(model: ChatModel) -> None:
    deltas = [delta async for delta in model.stream(QUESTION, max_tokens=60, temperature=0.0)]
    assert len([delta for delta in deltas if delta.text]) > 3
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == [deltas[-1].finish_reason]


async def test_stops_at_max_tokens(model: ChatModel) -> None:
    deltas = [delta async for delta in model.stream(QUESTION, max_tokens=3, temperature=0.0)]
    assert deltas[-1].finish_reason == "length"
    assert 0 < len([delta for delta in deltas if delta.text]) <= 3


async def test_answers_again_after_a_stop(model: ChatModel) -> None:
    async with aclosing(model.stream(QUESTION, max_tokens=400)) as stream:
        assert (await anext(stream)).text
    assert [delta async for delta in model.stream(QUESTION, max_tokens=3)]


async def test_answers_several_people_at_once(model: ChatModel) -> None:
    async def ask() -> str:
        return "".join([delta.text async for delta in model.stream(QUESTION, max_tokens=5)])

    assert all(await asyncio.gather(*[ask() for _ in range(6)]))


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_tools_that_are_not_called_change_nothing(model: ChatModel, choice: ToolChoice) -> None:
    """The embedded server accepts the request; its model calls no tools and answers in words."""
    tool = Tool(
        "x_recall_memory", "Looks up.", {"type": "object", "properties": {"query": {"type": "string"}}}
    )
    stream = model.stream(QUESTION, max_tokens=20, temperature=0.0, tools=[tool], tool_choice=choice)
    deltas = [delta async for delta in stream]
    assert any(delta.text for delta in deltas)
    assert deltas[-1].finish_reason in ("stop", "length")
    assert deltas[-1].tool_calls == ()


async def test_what_earlier_tools_said_may_stand_in_a_prompt(model: ChatModel) -> None:
    call = ToolCall("call_1", "x_recall_memory", '{"query": "sea"}')
    asked = Message("assistant", "", tool_calls=(call,))
    messages = [*QUESTION, asked, Message("tool", "# Recalled memories", tool_call_id="call_1")]
    assert "".join([delta.text async for delta in model.stream(messages, max_tokens=20, temperature=0.0)])


def test_complete_gives_text(model: ChatModel) -> None:
    assert model.complete(QUESTION, max_tokens=10, temperature=0.0).strip()


async def test_too_long_a_prompt_is_an_overflow(model: ChatModel) -> None:
    too_long = [Message("user", "the sea is blue " * 4000)]
    with pytest.raises(errors.ModelContextOverflow):
        model.complete(too_long, max_tokens=3)
    with pytest.raises(errors.ModelContextOverflow):
        async for _ in model.stream(too_long, max_tokens=3):
            pass


def test_a_wrong_key_is_refused(model: ChatModel) -> None:
    assert isinstance(model, OpenAIChatModel)
    right = model._endpoint()
    assert right is not None
    wrong = Endpoint(right.base_url, "wrong", right.model)
    with pytest.raises(errors.ModelRefused):
        OpenAIChatModel(lambda: wrong, model.capabilities).complete(QUESTION, max_tokens=3)
