"""Deviations of servers from the OpenAI API, in every reader of a model: chat, jobs and `/v1`."""

import asyncio
import json
from typing import Any

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Capabilities, Delta, Message, Tool
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from memoryhub.llm.output_parsing import call_in
from tests.fakes.openai_server import Answer, Raw, ScriptedOpenAI

ABLE = Capabilities(has_tools=True, can_extract=True, context_tokens=8192, local=True)
SAVE = Tool("x_save_memory", "Save.", {"type": "object", "properties": {"content": {"type": "string"}}})
QUESTION = [Message("user", "When is the deadline?")]
ANSWER = "March 15."


def model_at(server: ScriptedOpenAI) -> OpenAIChatModel:
    """Return a model that has learned nothing of the server yet."""
    endpoint = Endpoint(server.base_url, server.api_key, server.model)
    return OpenAIChatModel(lambda: endpoint, ABLE)


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI) -> OpenAIChatModel:
    return model_at(scripted_openai)


def event(value: object) -> str:
    return f"data: {json.dumps(value)}\n\n"


def chunk(content: object = None, reason: str | None = None, **delta: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": reason}]}


TEXT = event(chunk("March ")) + event(chunk("15."))
END = event(chunk(reason="stop")) + "data: [DONE]\n\n"
STREAMS = {
    "retry": "retry: 3000\n\n" + TEXT + END,
    "comments": ": ping\n\n" + TEXT + "id: 7\n: comment behind an id\n\n" + END,
    "empty data": TEXT + "data:\n\n" + "data: \n\n" + END,
    "ping event": "event: ping\ndata: ping\n\n" + TEXT + END,
    "choices null": event({"choices": None}) + TEXT + END,
    "no choices": event({"id": "x", "object": "status"}) + TEXT + END,
    "usage behind the end": TEXT
    + event(chunk(reason="stop"))
    + event({"usage": {"prompt_tokens": 9}})
    + "data: [DONE]\n\n",
    "cost behind the end": TEXT + END + "data: cost=0.02\n\n",
    "an error behind the end": TEXT + event(chunk(reason="stop")) + event({"error": "late"}),
    "broken JSON behind the end": TEXT + event(chunk(reason="stop")) + 'data: {"usage": \n\n',
    "no blank line at the end": (TEXT + event(chunk(reason="stop"))).rstrip("\n"),
    "CRLF": (TEXT + END).replace("\n", "\r\n"),
    "CR": (TEXT + END).replace("\n", "\r"),
    "parts": event(chunk([{"type": "text", "text": "March "}])) + event(chunk(["15."])) + END,
    "several data lines": event(chunk("March 15.", "stop")).replace('"delta":', '"delta":\ndata:'),
    "whole JSON": json.dumps({"choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}]}),
    "pretty JSON": json.dumps(
        {"choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}]}, indent=2
    ),
    "JSON lines": json.dumps(chunk("March 15.", "stop")) + "\n",
}


async def read(model: OpenAIChatModel, *tools: Tool) -> list[Delta]:
    return [delta async for delta in model.stream(QUESTION, tools=tools)]


async def test_an_odd_stream_is_read_to_its_end(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    body = {"messages": [{"role": "user", "content": "When?"}], "stream": True}
    for name, stream in STREAMS.items():
        scripted_openai.script(Raw(stream.encode()), Raw(stream.encode()))
        deltas = await read(model)
        assert ("".join(delta.text for delta in deltas), deltas[-1].finish_reason) == (ANSWER, "stop"), name
        passed_on = [part async for part in model.raw.stream(body)]
        texts = (each["choices"][0]["delta"].get("content") or "" for each in passed_on if each["choices"])
        assert "".join(texts) == ANSWER, name


async def test_text_with_unicode_line_separators_is_one_line(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    words = "one\u2028two\u2029three\u0085four"
    text = json.dumps(chunk(words, "stop"), ensure_ascii=False)
    scripted_openai.script(Raw(f"data: {text}\n\n".encode()))
    assert (await read(model))[0].text == words


# Tool calls


def fragment(**fields: Any) -> str:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return event(chunk(tool_calls=[{**fields, "function": function}]))


ARGUMENTS = '{"content": "I am vegetarian"}'
HALVES = ARGUMENTS[:12], ARGUMENTS[12:]
CALLS = {
    "no index": fragment(id="a", name="x_save_memory", arguments=HALVES[0]) + fragment(arguments=HALVES[1]),
    "another index": fragment(index=0, id="a", name="x_save_memory", arguments=HALVES[0])
    + fragment(index=1, arguments=HALVES[1]),
    "the same id under another index": fragment(index=0, id="a", name="x_save_memory", arguments=HALVES[0])
    + fragment(index=1, id="a", arguments=HALVES[1]),
    "arguments before the name": fragment(index=0, id="a", arguments=HALVES[0])
    + fragment(index=0, name="x_save_memory", arguments=HALVES[1]),
    "a split name": fragment(index=0, id="a", name="x_save_")
    + fragment(index=0, name="memory", arguments=ARGUMENTS),
    "the name again and again": fragment(index=0, id="a", name="x_save_memory", arguments=HALVES[0])
    + fragment(index=0, id="a", name="x_save_memory", arguments=HALVES[1]),
    "fenced": fragment(index=0, id="a", name="x_save_memory", arguments=f"```json\n{ARGUMENTS}\n```"),
    "encoded twice": fragment(index=0, id="a", name="x_save_memory", arguments=json.dumps(ARGUMENTS)),
    "an object": event(
        chunk(
            tool_calls={"id": "a", "function": {"name": "x_save_memory", "arguments": json.loads(ARGUMENTS)}}
        )
    ),
}


def read_calls(delta: Delta) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in delta.tool_calls]


async def test_an_odd_call_is_one_call(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    for name, stream in CALLS.items():
        scripted_openai.script(Raw((stream + event(chunk(reason="tool_calls"))).encode()))
        assert read_calls((await read(model, SAVE))[-1]) == [("x_save_memory", json.loads(ARGUMENTS))], name


async def test_two_whole_calls_with_one_index_stay_two(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    both = fragment(index=0, name="x_save_memory", arguments=ARGUMENTS) * 2
    scripted_openai.script(Raw((both + event(chunk(reason="tool_calls"))).encode()))
    assert len((await read(model, SAVE))[-1].tool_calls) == 2


CALL = '{"name": "x_save_memory", "arguments": {"content": "I am vegetarian"}}'
WRITTEN = {
    "Qwen, Hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "not closed": f"<tool_call>\n{CALL}",
    "fenced": f"```json\n{CALL}\n```",
    "fenced without a language": f"```\n{CALL}\n```",
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Llama 3": '<|python_tag|>{"name": "x_save_memory", "parameters": {"content": "I am vegetarian"}}<|eom_id|>',
    "doubled braces": CALL.replace("{", "{{").replace("}", "}}"),
    "bare": f"  {CALL}\n",
    "OpenAI's own form": json.dumps(
        {"type": "function", "function": {"name": "x_save_memory", "arguments": ARGUMENTS}}
    ),
}
TEXTS = (
    '```json\n{"name": "x_other_tool", "arguments": {}}\n```',  # not offered
    f"Here is the call:\n{CALL}",
    f"{CALL}\nI have saved it.",
    '```json\n{"name": "Ada", "age": 36}\n```',
    '{"vegetarian": true}',
    "```python\nprint('<tool_call>')\n```",
    "[1, 2, 3]",
    "{",
)


def in_pieces(text: str) -> Answer:
    return Answer(*[text[at : at + 7] for at in range(0, len(text), 7)])


async def test_a_call_written_as_text_is_a_call(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for name, text in WRITTEN.items():
        scripted_openai.script(in_pieces(text))
        deltas = await read(model, SAVE)
        assert "".join(delta.text for delta in deltas) == "", name
        assert read_calls(deltas[-1]) == [("x_save_memory", json.loads(ARGUMENTS))], name
        assert deltas[-1].finish_reason == "tool_calls", name


async def test_anything_else_stays_text(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    for text in TEXTS:
        scripted_openai.script(in_pieces(text))
        deltas = await read(model, SAVE)
        assert "".join(delta.text for delta in deltas) == text
        assert not deltas[-1].tool_calls, text


async def test_without_tools_a_call_is_text(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(Answer(WRITTEN["fenced"]))
    assert "".join(delta.text for delta in await read(model)) == WRITTEN["fenced"]


def test_long_blanks_are_read_in_linear_time() -> None:
    assert call_in("<tool_call>" + " " * 200_000 + "x", ["x"]) is None


# Errors

REFUSED = "response_format is not supported, stream_options neither"
SHAPES: dict[str, object] = {
    "a text": {"error": REFUSED},
    "a message": {"error": {"message": REFUSED}},
    "a detail": {"detail": REFUSED},
    "details": {"detail": [{"loc": ["body"], "msg": REFUSED}]},
    "a list": [{"error": {"message": REFUSED}}],
    "an object": {"object": "error", "message": REFUSED, "code": 400},
    "a message alone": {"message": REFUSED},
}


async def test_a_refusal_in_any_shape_is_learned_from(scripted_openai: ScriptedOpenAI) -> None:
    for name, shape in SHAPES.items():
        model = model_at(scripted_openai)
        refusal = Raw(json.dumps(shape).encode(), "application/json", 400)
        scripted_openai.script(refusal, Answer(ANSWER), refusal, Answer(ANSWER))
        assert await asyncio.to_thread(model.complete, QUESTION, json=True) == ANSWER, name
        assert "response_format" not in scripted_openai.chat_requests[-1].body, name
        assert "".join(delta.text for delta in await read(model)) == ANSWER, name
        assert "stream_options" not in scripted_openai.chat_requests[-1].body, name


OVERFLOW = "This model's maximum context length is 8192 tokens"


async def test_an_error_with_status_200_is_that_error(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for body in (
        json.dumps({"error": OVERFLOW}),
        json.dumps({"error": {"message": OVERFLOW, "code": 400}}),
        json.dumps([{"error": {"message": OVERFLOW}}]),
        f"event: error\ndata: {json.dumps({'error': OVERFLOW})}\n\n",
        f"error: {json.dumps({'message': OVERFLOW})}\n\n",
        f"data: error: {OVERFLOW}\n\n",
        json.dumps({"detail": OVERFLOW}),
    ):
        scripted_openai.script(Raw(body.encode()))
        with pytest.raises(errors.ModelContextOverflow):
            await read(model)
        if body.startswith(("{", "[")):
            scripted_openai.script(Raw(body.encode(), "application/json"))
            with pytest.raises(errors.ModelContextOverflow):
                await asyncio.to_thread(model.complete, QUESTION)


async def test_thoughts_until_the_limit_say_so(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Raw((event(chunk(reasoning="Well …")) + event(chunk(reason="length"))).encode()))
    with pytest.raises(errors.ModelBadReply, match="length limit while it was still thinking"):
        await read(model)
