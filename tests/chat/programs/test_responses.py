"""``/v1/responses`` by OpenAI's own library, over any model that offers chat completions."""

from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel

from chat.models import PassingTurn
from memories.models import Extraction, Memory
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.openai_server import Answer, Call, Failure, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "When is the deadline of Apollo?"
LOOK: Any = {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object"}}


@pytest.fixture
def client(door: str, people: Cast) -> openai.OpenAI:
    return client_of(door, people.editor, people.workspace)


@pytest.fixture
def deadline(people: Cast) -> Memory:
    return make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)


def test_an_answer_has_memory_before_the_question_and_what_was_asked_for(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    scripted_model.script(Answer("On March 15."))
    picture: Any = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    answer: Any = client.responses.create(
        model="default",
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "Say dates in full."},
            {"role": "user", "content": [{"type": "input_text", "text": QUESTION}, picture]},
        ],
        max_output_tokens=90,
        temperature=0.1,
        reasoning={"effort": "low"},
        text={"format": {"type": "json_object"}},
        metadata={"mine": "stays", "memoryhub_memory": "read"},
        extra_body={"seed": 7},
    )
    assert (answer.output_text, answer.status, answer.object) == ("On March 15.", "completed", "response")
    assert answer.memoryhub["used"] == [deadline.public_id]
    assert answer.memoryhub["not_saved"]["code"] == "read_in_request"
    assert (answer.instructions, answer.metadata, answer.store) == ("Be brief.", {"mine": "stays"}, False)
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (9, 3, 12)
    [sent] = scripted_model.requests
    assert [m["role"] for m in sent.messages] == ["system", "system", "system", "user"]
    assert sent.messages[0]["content"] == "Be brief." and "March 15" in sent.messages[2]["content"]
    assert sent.messages[3]["content"][1]["image_url"] == {"url": picture["image_url"], "detail": "low"}
    assert sent.body["response_format"] == {"type": "json_object"} and sent.body["metadata"] == {
        "mine": "stays"
    }
    wanted = {"seed": 7, "temperature": 0.1, "max_completion_tokens": 90, "reasoning_effort": "low"}
    assert wanted.items() <= sent.body.items()
    assert not Extraction.objects.exists(), "it asked that nothing be noticed"


def test_events_are_those_that_the_library_follows_and_the_turn_is_mined_once(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory, eventually: Callable[..., None]
) -> None:
    scripted_model.script(Answer("On ", "March 15."))
    with client.responses.stream(model="default", input=QUESTION) as stream:
        events = list(stream)
        final: Any = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    ]  # fmt: skip
    assert kinds[-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert [event.sequence_number for event in events] == list(range(len(events)))
    first: Any = events[0]
    assert first.response.memoryhub["used"] == [deadline.public_id]
    assert (final.output_text, final.usage.output_tokens) == ("On March 15.", 3)
    assert final.id == first.response.id and final.output[0].status == "completed"
    client.responses.create(model="default", input=QUESTION)
    client.chat.completions.create(model="default", messages=[{"role": "user", "content": QUESTION}])
    eventually(lambda: Extraction.objects.count() == 1)
    turn = PassingTurn.objects.get()
    assert Extraction.objects.get().message_id == turn.public_id, (
        "said once, whichever form it is sent in again"
    )
    assert turn.answer == "On March 15."


@pytest.mark.parametrize("streams", [False, True])
def test_calls_of_tools_go_out_and_what_they_came_to_comes_back(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, eventually: Callable[..., None], streams: bool
) -> None:
    scripted_model.script(
        Answer("Wait.", calls=[Call("look", {"at": 1}), Call("look", {"at": 2})]), Answer("Green.")
    )
    asked: Any = [{"role": "user", "content": QUESTION}]
    first: Any
    choice: Any = {"type": "function", "name": "look"}
    if streams:
        with client.responses.stream(
            model="default", input=asked, tools=[LOOK], tool_choice=choice
        ) as stream:
            done = [each for each in stream if each.type == "response.function_call_arguments.done"]
            first = stream.get_final_response()
        assert [each.arguments for each in done] == ['{"at": 1}', '{"at": 2}']
    else:
        first = client.responses.create(model="default", input=asked, tools=[LOOK], tool_choice=choice)
    assert [item.type for item in first.output] == ["message", "function_call", "function_call"]
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(call.name, call.arguments) for call in calls] == [("look", '{"at": 1}'), ("look", '{"at": 2}')]
    assert calls[0].call_id != calls[1].call_id and not Extraction.objects.exists()
    more = [*asked, *(item.model_dump(exclude_none=True) for item in first.output)]
    more += [
        {"type": "function_call_output", "call_id": call.call_id, "output": "The lamp is green"}
        for call in calls
    ]
    assert client.responses.create(model="default", input=more, tools=[LOOK]).output_text == "Green."
    one, two = scripted_model.requests
    assert one.tool_names == ["look"] and one.body["tool_choice"] == {
        "type": "function",
        "function": {"name": "look"},
    }
    assert [m["role"] for m in two.messages] == ["user", "assistant", "tool", "tool"]
    said = two.messages[1]
    assert said["content"] == "Wait." and [call["id"] for call in said["tool_calls"]] == [
        c.call_id for c in calls
    ]
    assert two.tool_results == ["The lamp is green"] * 2
    eventually(lambda: Extraction.objects.count() == 1)


class Due(BaseModel):
    day: int


def test_a_schema_is_passed_on_and_its_answer_parsed(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer('{"day": 15}'))
    answer = client.responses.parse(model="default", input=QUESTION, text_format=Due)
    assert answer.output_parsed == Due(day=15)
    schema = scripted_model.requests[0].body["response_format"]
    assert schema["type"] == "json_schema" and schema["json_schema"]["name"] == "Due"
    assert schema["json_schema"]["schema"]["required"] == ["day"] and schema["json_schema"]["strict"] is True


def test_what_is_cut_short_or_fails_says_so(client: openai.OpenAI, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("On", finish_reason="length"))
    cut: Any = client.responses.create(model="default", input=QUESTION)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    scripted_model.script(Answer("On", finish_reason="length"))
    last: Any = list(client.responses.create(model="default", input=QUESTION, stream=True))[-1]
    assert (last.type, last.response.output[0].status) == ("response.incomplete", "incomplete")
    scripted_model.script(Answer("On ", cut=True))
    last = list(client.responses.create(model="default", input=QUESTION, stream=True))[-1]
    assert (last.type, last.response.status) == ("response.failed", "failed") and last.response.error.message
    for stream in (False, True):
        scripted_model.script(Failure(429, headers={"retry-after": "30"}))
        with pytest.raises(openai.RateLimitError):
            client.responses.create(model="default", input=QUESTION, stream=stream)  # type: ignore[call-overload]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({"input": None}, "input"),
    "empty": ({"input": []}, "input"),
    "number": ({"input": [7]}, "input[0]"),
    "role": ({"input": [{"role": "god", "content": "x"}]}, "input[0]"),
    "role list": ({"input": [{"role": [], "content": "x"}]}, "input[0]"),
    "role object": ({"input": [{"role": {}, "content": "x"}]}, "input[0]"),
    "kind": ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    "part list": ({"input": [{"role": "user", "content": [{"type": ["text"]}]}]}, "input[0].content[0]"),
    "part object": (
        {"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": {}, "text": "x"}]}]},
        "input[0].content[0]",
    ),
    "NUL": ({"metadata": {"memoryhub_assistant": "a\0b"}}, "memoryhub_assistant"),
    "part": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0]",
    ),
    "call": ({"input": [{"type": "function_call", "name": "x"}]}, "input[0]"),
    "earlier": ({"previous_response_id": "resp_x"}, "previous_response_id"),
    "background": ({"background": True}, "background"),
    "tools": ({"tools": "look"}, "tools"),
    "tool": ({"tools": [{"type": "web_search"}]}, "tools[0]"),
    "choice": ({"tools": [LOOK], "tool_choice": {"type": "web_search"}}, "tool_choice"),
    "format": ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    "format list": ({"text": {"format": []}}, "text"),
    "text": ({"text": "json"}, "text"),
    "limit": ({"max_output_tokens": "many"}, "max_output_tokens"),
    "reasoning": ({"reasoning": "hard"}, "reasoning"),
    "instructions": ({"instructions": [1]}, "instructions"),
    "metadata": ({"metadata": [1]}, "metadata"),
    "stream": ({"stream": "yes"}, "stream"),
}


def test_what_is_wrong_is_named_in_openais_form(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    for name, (changes, param) in WRONG.items():
        with pytest.raises(openai.BadRequestError) as refused:
            client.post("/responses", body={"model": "default", "input": "Hi"} | changes, cast_to=object)
        assert refused.value.param == param, name
    half = b'{"model": "default", "input": "Hi", "metadata": {"memoryhub_assistant": "\\ud800"}}'
    headers = {**client.auth_headers, "Content-Type": "application/json"}
    answered = httpx2.post(f"{client.base_url}responses", content=half, headers=headers)
    assert (answered.status_code, answered.json()["error"]["param"]) == (400, "memoryhub_assistant")
    for path in ("/responses/resp_x", "/responses/resp_x/input_items"):
        with pytest.raises(openai.NotFoundError):
            client.get(path, cast_to=object)
    assert not scripted_model.requests
