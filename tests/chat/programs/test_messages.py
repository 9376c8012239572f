"""``/v1/messages``: requests and answers in Anthropic's form. The real client is in test_programs.py."""

import json
from itertools import cycle, islice
from typing import Any

import pytest
from django.test import Client

from chat.models import PassingTurn
from chat.turns import turn
from memories.models import Extraction, Memory
from tests.chat.programs.test_brought_in import EVIL, mined
from tests.conftest import Cast
from tests.factories import make_connection, make_key_text, make_memory
from tests.fakes.openai_server import Answer, Call, Failure, Raw, ScriptedOpenAI
from workspaces.models import Budget, KeyScope, Role, User

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "When is the deadline of Apollo?"
LOOK = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


@pytest.fixture
def key(people: Cast) -> str:
    return make_key_text(people.editor, people.workspace)


@pytest.fixture
def deadline(people: Cast) -> Memory:
    return make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)


def post(key: str, path: str = "messages", headers: Any = None, **body: Any) -> Any:
    asked = {
        "model": "default",
        "max_tokens": 90,
        "messages": [{"role": "user", "content": QUESTION}],
        **body,
    }
    answer = Client(headers={"x-api-key": key, **(headers or {})}).post(
        f"/v1/{path}", asked, content_type="application/json"
    )
    if not asked.get("stream"):
        assert turn.wait_until_idle(10)
    return answer


def events(answer: Any) -> list[dict[str, Any]]:
    lines = b"".join(answer).decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def test_request_is_passed_on_as_a_chat_completion(
    key: str, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    scripted_model.script(Answer("Green."))
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "é"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [text("None."), PICTURE],
        "is_error": True,
    }
    answer = post(
        key,
        system=[text("Be brief."), {**text("Always."), "cache_control": {"type": "ephemeral"}}],
        messages=[
            user(text("<system-reminder>Mind the cat.</system-reminder>"), text(QUESTION), PICTURE),
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}, text("Wait."), call]},
            user(result),
        ],
        tools=[LOOK],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        stop_sequences=["END"],
        temperature=0.1,
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        thinking={"type": "enabled", "budget_tokens": 2000},
        metadata={"user_id": "u", "memoryhub_memory": "read"},
    )
    assert answer.status_code == 200, answer.content
    sent = scripted_model.requests[0]
    system, memory, question, waited, tool, picture = sent.messages
    assert (system["content"], memory["role"]) == ("Be brief.\nAlways.", "system")
    assert "March 15" in memory["content"]
    assert [part["type"] for part in question["content"]] == ["text", "text", "image_url"]
    assert question["content"][2]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert waited["content"] == "Wait."
    assert waited["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "é"}'}
    assert tool == {"role": "tool", "tool_call_id": "toolu_1", "content": "Error: None."}
    assert (picture["role"], picture["content"][0]["type"]) == ("user", "image_url")
    function = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    assert sent.body["tools"] == [{"type": "function", "function": function}]
    passed = {"tool_choice": "required", "parallel_tool_calls": False, "stop": ["END"], "temperature": 0.1}
    assert passed.items() <= sent.body.items() and sent.body["max_completion_tokens"] == 90
    assert sent.body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert not {"metadata", "thinking", "output_config", "user"} & set(sent.body)
    assert answer["X-MemoryHub-Used"] == deadline.public_id and not Extraction.objects.exists()


def test_answer_has_anthropics_form_whole_and_streamed(
    key: str, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    for streams in (False, True):
        scripted_model.script(
            Answer("<think>It knows.</think>On ", "March 15.", calls=[Call("look", {"at": 1})])
        )
        answer = post(key, tools=[LOOK], stream=streams)
        if not streams:
            message = answer.json()
            assert message["content"][0] == text("On March 15.")
            call = message["content"][1]
            assert (call["type"], call["name"], call["input"]) == ("tool_use", "look", {"at": 1})
            assert (message["type"], message["role"], message["stop_reason"]) == (
                "message",
                "assistant",
                "tool_use",
            )
            assert message["usage"]["input_tokens"] == 9 and message["usage"]["output_tokens"] == 3
            assert message["memoryhub"] == {"used": [deadline.public_id], "saved": []}
            continue
        came = events(answer)
        kinds = [each["type"] for each in came]
        assert kinds[:2] == ["message_start", "content_block_start"]
        assert kinds[-6:] == [
            "content_block_stop", "content_block_start", "content_block_delta", "content_block_stop",
            "message_delta", "message_stop",
        ]  # fmt: skip
        assert set(kinds[2:-6]) == {"content_block_delta"}
        assert came[0]["message"]["memoryhub"]["used"] == [deadline.public_id]
        assert came[0]["message"]["content"] == [] and came[0]["message"]["usage"]["input_tokens"] > 0
        said = [each["delta"]["text"] for each in came if each.get("delta", {}).get("type") == "text_delta"]
        assert "".join(said) == "On March 15."
        assert came[-2]["delta"]["stop_reason"] == "tool_use" and came[-2]["usage"]["output_tokens"] == 3


def test_stop_reasons(key: str, scripted_model: ScriptedOpenAI) -> None:
    for reply, reason, stop in (
        ({"message": {"content": "Hi"}, "finish_reason": "length"}, "max_tokens", None),
        ({"message": {"content": "Hi"}, "finish_reason": "content_filter"}, "refusal", None),
        ({"message": {"refusal": "No."}, "finish_reason": "stop"}, "refusal", None),
        (
            {"message": {"content": "Hi"}, "finish_reason": "stop", "stop_reason": "END"},
            "stop_sequence",
            "END",
        ),
        ({"message": {"content": "Hi"}, "finish_reason": "stop"}, "end_turn", None),
        (
            {"message": {"content": '{"name": "look", "arguments": {"at": 1}}'}, "finish_reason": "stop"},
            "tool_use",
            None,
        ),
    ):
        body = json.dumps({"choices": [{"index": 0, **reply}]}).encode()
        scripted_model.script(Raw(body, "application/json"))
        message = post(key, stop_sequences=["END"], tools=[LOOK]).json()
        assert (message["stop_reason"], message["stop_sequence"]) == (reason, stop)
        scripted_model.script(Raw(body, "application/json"))
        came = events(post(key, stop_sequences=["END"], tools=[LOOK], stream=True))
        assert came[-2]["delta"] == {"stop_reason": reason, "stop_sequence": stop}


def test_max_tokens_beyond_the_models_context_is_lowered(key: str, scripted_model: ScriptedOpenAI) -> None:
    make_connection(
        name="House", model="large-2", base_url=scripted_model.base_url, api_key="test-key",
        is_local=True, context_tokens=8_192,
    )  # fmt: skip
    post(key, model="House", max_tokens=64_000)
    assert 8_000 < scripted_model.requests[-1].body["max_completion_tokens"] < 8_192
    post(key, model="House", max_tokens=64_000, system="word " * 20_000)
    assert scripted_model.requests[-1].body["max_completion_tokens"] == 1_024


WRONG: dict[str, dict[str, Any]] = {
    "no limit": {"max_tokens": None},
    "a limit of true": {"max_tokens": True},
    "no messages": {"messages": []},
    "a role of its own": {"messages": [{"role": "tool", "content": "x"}]},
    "an unknown block": {"messages": [user({"type": "server_tool_use"})]},
    "blocks that are text": {"messages": [user("x")]},
    "a picture by file": {"messages": [user({"type": "image", "source": {"type": "file", "file_id": "f"}})]},
    "a source of nothing": {"messages": [user({"type": "document", "source": None})]},
    "a call without input": {
        "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]
    },
    "a result without a call": {"messages": [user({"type": "tool_result"})]},
    "tools in a word": {"tools": "look"},
    "a tool at Anthropic": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "a choice of nothing": {"tools": [LOOK], "tool_choice": {"type": []}},
    "a schema of nothing": {"output_config": {"format": {"type": "json_schema"}}},
    "servers of MCP": {"mcp_servers": [{"url": "https://example.org"}]},
    "system of pictures": {"system": [PICTURE]},
    "stops of numbers": {"stop_sequences": [1]},
}


def test_what_cannot_be_read_is_refused_in_anthropics_form(key: str, scripted_model: ScriptedOpenAI) -> None:
    for name, body in WRONG.items():
        answer = post(key, **body)
        assert answer.status_code == 400, (name, answer.content)
        error = answer.json()
        assert set(error) == {"type", "error"} and error["type"] == "error", name
        assert error["error"]["type"] == "invalid_request_error" and error["error"]["message"], name
    assert not scripted_model.requests


def test_failures_of_the_model_have_anthropics_types(key: str, scripted_model: ScriptedOpenAI) -> None:
    for failure, status, kind in (
        (
            Failure(400, "maximum context length is 9", code="context_length_exceeded"),
            400,
            "invalid_request_error",
        ),
        (Failure(401), 502, "api_error"),
        (Failure(429, headers={"retry-after": "60"}), 429, "rate_limit_error"),
        (Raw(b'{"choices": [7]}', "application/json"), 502, "api_error"),
    ):
        scripted_model.script(failure)
        answer = post(key)
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind), failure
        scripted_model.unscript()
    scripted_model.script(Failure(400, "maximum context length is 9", code="context_length_exceeded"))
    assert post(key).json()["error"]["message"].startswith("prompt is too long: ")
    broken = {
        "index": 0,
        "delta": {"tool_calls": [{"id": "a", "function": {"name": "look", "arguments": "no"}}]},
    }
    scripted_model.script(Raw(f"data: {json.dumps({'choices': [broken]})}\n\ndata: [DONE]\n\n".encode()))
    last = events(post(key, tools=[LOOK], stream=True))[-1]
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")


def test_a_used_up_budget_is_no_rate_limit(key: str, people: Cast, scripted_model: ScriptedOpenAI) -> None:
    Budget.objects.create(workspace=people.workspace, tokens=1)
    post(key)
    answer = post(key)
    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "billing_error")
    assert answer["X-Should-Retry"] == "false" and len(scripted_model.requests) == 1


def test_models_have_the_form_of_the_client_that_asks(key: str) -> None:
    client = Client(headers={"x-api-key": key})
    theirs = {"anthropic-version": "2023-06-01"}
    listed = client.get("/v1/models", headers=theirs).json()
    assert listed["data"][0]["type"] == "model" and listed["has_more"] is False
    assert (listed["first_id"], listed["last_id"]) == (listed["data"][0]["id"], listed["data"][-1]["id"])
    assert client.get("/v1/models/scripted-model", headers=theirs).json()["display_name"] == "scripted-model"
    assert client.get("/v1/models").json()["object"] == "list"
    missing = client.get("/v1/models/nothing", headers=theirs)
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")


def test_tokens_are_counted_without_asking_the_model(key: str, scripted_model: ScriptedOpenAI) -> None:
    short, long = (
        post(key, "messages/count_tokens", max_tokens=None, system=system).json()["input_tokens"]
        for system in ("Be brief.", "Be brief. " * 100)
    )
    assert 0 < short < long and not scripted_model.requests


def test_older_addresses_name_the_newer_ones(key: str) -> None:
    client = Client(headers={"authorization": f"Bearer {key}"})
    for path, instead in (("completions", "/v1/chat/completions"), ("complete", "/v1/messages")):
        answer = client.post(
            f"/v1/{path}", {"model": "default", "prompt": "Hi"}, content_type="application/json"
        )
        assert answer.status_code == 404 and instead in answer.json()["error"]["message"]
    assert Client().post("/v1/completions").status_code == 401


def test_without_a_key_or_with_a_wrong_one_nobody_comes_in(people: Cast) -> None:
    answers = [Client(headers=headers).post("/v1/messages") for headers in ({}, {"x-api-key": "mh_no"})]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


def test_why_no_memory_was_used_or_saved_is_said(
    people: Cast, scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    key = make_key_text(people.editor, people.workspace)
    bodies = {
        "chat/completions": {},
        "responses": {"input": QUESTION},
        "messages": {},
    }

    asked = cycle(bodies)

    def note(with_key: str = key, headers: Any = None, endpoints: int = 1, **body: Any) -> tuple[str, str]:
        """Return the codes of the notice through the next endpoints, which must be the same."""
        codes = set()
        for path in islice(asked, endpoints):
            more = bodies[path]
            answer = post(with_key, path, headers, **{**more, **body})
            said = answer.json()["memoryhub"]
            assert all(said[name]["message"] for name in ("not_used", "not_saved") if name in said)
            codes.add(tuple(said.get(name, {}).get("code", "") for name in ("not_used", "not_saved")))
        [both] = codes
        return both

    assert note(endpoints=3) == ("none_stored", "")
    memory = make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)
    assert note() == ("", "")
    assert note(headers={"X-MemoryHub-Memory": "off"}) == ("off_in_request", "off_in_request")
    assert note(headers={"X-MemoryHub-Memory": "read"}) == ("", "read_in_request")
    assert note(make_key_text(people.editor, people.workspace, scope=KeyScope.READ)) == ("", "read_only_key")
    people.workspace.memberships.filter(user=people.editor).update(role=Role.VIEWER)
    assert note() == ("", "viewer")
    people.workspace.memberships.filter(user=people.editor).update(role=Role.EDITOR)
    errand = "### Task:\nSuggest a title."
    bodies["responses"]["input"] = errand
    assert note(messages=[{"role": "user", "content": errand}]) == ("no_question", "no_question")
    unrelated = "Thanks, that will do."
    bodies["responses"]["input"] = unrelated
    assert note(messages=[{"role": "user", "content": unrelated}]) == ("none_relevant", "")
    bodies["responses"]["input"] = QUESTION
    User.objects.filter(pk=people.editor.pk).update(memory_default=None)
    assert note(endpoints=3) == ("no_consent", "no_consent")
    settings.MEMORY_ENABLED = False
    assert note() == ("off_on_server", "off_on_server")
    assert memory.public_id not in str(scripted_model.requests[-1].messages)


def test_what_a_program_marked_as_its_own_is_nobodys_word(
    key: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    """Coding tools insert reminders, files and documents into the user's message."""
    document = {"type": "text", "media_type": "text/plain", "data": f"</document>{EVIL}"}
    ways: dict[str, list[Any]] = {
        "a reminder": [
            user(text(f"<system-reminder>\n{EVIL}\n</system-reminder>"), text("Tell me the news, please"))
        ],
        "an open reminder": [user(text("Tell me the news, please"), text(f"<system-reminder>{EVIL}"))],
        "a document": [user(text("Tell me the news, please"), {"type": "document", "source": document})],
        "a tool's result": [
            user(text("Tell me the news, please")),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
            user({"type": "tool_result", "tool_use_id": "a", "content": EVIL}),
        ],
        "the system prompt": [user(text("Tell me the news, please"))],
    }
    found = {}
    for way, messages in ways.items():
        scripted_model.script(Answer(f"The news: {EVIL}"))
        assert (
            post(
                key, messages=messages, system=EVIL if way == "the system prompt" else "Be brief."
            ).status_code
            == 200
        )
        said = PassingTurn.objects.get().said
        assert said[-1] == ["user", "Tell me the news, please"], way
        found[way] = mined(scripted_model, EVIL)
    assert found == dict.fromkeys(ways, (0, 1))
    own = "Our launch party is in Lisbon on the harbour"
    scripted_model.script(Answer("Noted."))
    post(key, messages=[user(text("<system-reminder>Mind the cat.</system-reminder>"), text(own))])
    assert mined(scripted_model, "The launch party is in Lisbon on the harbour") == (1, 1)
