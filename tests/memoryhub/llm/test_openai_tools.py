"""Tool calls on the wire: fragments as OpenAI sends them, whole as others do, and models that take no tools."""

import json
from typing import Any

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Delta, Message, Tool, ToolCall
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import Answer, Call, Failure, Raw, ScriptedOpenAI
from tests.memoryhub.llm.conftest import model_of

QUESTION = [Message("user", "Do I like tea?")]
RECALL = Tool("x_recall_memory", "Looks up.", {"type": "object", "properties": {"query": {"type": "string"}}})


async def last_of(model: OpenAIChatModel, **options: Any) -> Delta:
    return [delta async for delta in model.stream(QUESTION, tools=[RECALL], **options)][-1]


def chunks(*deltas: dict[str, Any], reason: str = "tool_calls") -> Raw:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    events = [f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n" for choice in choices]
    return Raw("".join([*events, "data: [DONE]\n\n"]).encode())


def whole(name: str, arguments: str, **fields: Any) -> dict[str, Any]:
    return {
        "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}, **fields}]
    }


async def test_tools_are_offered_and_parallel_calls_come_whole_with_the_end(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    calls = (Call("x_recall_memory", {"query": "tea"}, "a"), Call("x_recall_memory", {"query": "cup"}, "b"))
    scripted_openai.script(Answer("Let me look.", calls=calls))
    deltas = [delta async for delta in model.stream(QUESTION, tools=[RECALL])]
    assert [delta.text for delta in deltas] == ["Let me look.", ""]
    assert deltas[-1] == Delta(
        "",
        "tool_calls",
        (
            ToolCall("a", "x_recall_memory", '{"query": "tea"}'),
            ToolCall("b", "x_recall_memory", '{"query": "cup"}'),
        ),
    )
    body = scripted_openai.chat_requests[0].body
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "x_recall_memory",
                "description": "Looks up.",
                "parameters": dict(RECALL.parameters),
            },
        }
    ]
    assert "tool_choice" not in body


OTHER_WAYS: list[list[dict[str, Any]]] = [
        # Each complete, with index 0, and ids of their own.
        [whole("one", "{}", index=0, id="a"), whole("two", '{"n": 2}', index=0, id="b")],
        # Complete, without ids and indexes, the same tool twice.
        [whole("one", "{}"), whole("one", '{"n": 2}')],
        # The name repeated in every fragment.
        [whole("one", "{}", index=0), whole("two", '{"n"', index=1), whole("two", ": 2}", index=1)],
        # Fragments of two calls in turn, told apart by their ids alone.
        [whole("one", "{", id="a"), whole("two", '{"n"', id="b"), whole("", "}", id="a"), whole("", ": 2}", id="b")],
        # Arguments as an object.
        [whole("one", "{}", index=0), {"tool_calls": [{"index": 1, "function": {"name": "x", "arguments": {"n": 2}}}]}],
]  # fmt: skip


async def test_other_servers_ways_of_sending_calls(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for deltas in OTHER_WAYS:
        scripted_openai.script(chunks(*deltas, reason="stop"))
        calls = (await last_of(model)).tool_calls
        assert [json.loads(call.arguments) for call in calls] == [{}, {"n": 2}], deltas
        assert len({call.id for call in calls}) == 2, deltas


async def test_none_keeps_the_definitions_but_forbids_calls(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("Fine."))
    await last_of(model, tool_choice="none")
    body = scripted_openai.chat_requests[0].body
    assert (body["tool_choice"], len(body["tools"])) == ("none", 1)


async def test_a_model_that_takes_no_tools_is_asked_without_from_then_on(
    scripted_openai: ScriptedOpenAI,
) -> None:
    for refusal in (
        "registry.ollama.ai/library/tiny does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "This model does not support function calling",
        "tools are not supported by this model",
    ):
        scripted_openai.requests.clear()
        scripted_openai.script(Failure(400, refusal), Answer("One."), Answer("Two."))
        model = model_of(scripted_openai)
        await last_of(model, tool_choice="none")
        await last_of(model)
        offered = [request.tool_names for request in scripted_openai.chat_requests]
        assert offered == [["x_recall_memory"], [], []], refusal
        assert all("tool_choice" not in request.body for request in scripted_openai.chat_requests[1:])


async def test_a_wrong_schema_is_our_mistake_and_not_the_models_lack(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Failure(400, "Invalid schema for function 'x_recall_memory'"))
    with pytest.raises(errors.ModelBadRequest):
        await last_of(model)


async def test_a_stream_cut_within_a_call_is_asked_again(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    call = Call("x_recall_memory", {"query": "tea"})
    scripted_openai.script(Answer(calls=[call], cut=True), Answer(calls=[call]))
    assert [call.arguments for call in (await last_of(model)).tool_calls] == ['{"query": "tea"}']
    assert len(scripted_openai.chat_requests) == 2


async def test_calls_without_end_are_a_bad_reply(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    endless = chunks(*[whole("one", "{}", index=number) for number in range(100)])
    scripted_openai.script(endless, endless, endless)
    with pytest.raises(errors.ModelBadReply):
        await last_of(model)
