"""Trying out a model, over real HTTP and against the embedded one."""

import pytest

from memoryhub.llm import model_check
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import Capabilities
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.model_check import Trial, try_model
from tests.fakes.openai_server import HOLD, Answer, Call, Drop, Failure, Hang, Raw, Reply, ScriptedOpenAI

CAPABILITIES = Capabilities(has_tools=True, can_extract=True, context_tokens=4096, local=False)
CALLED, JSON = (
    Answer(calls=[Call("get_time", {"city": "Paris"})]),
    Answer('{"fact": "Moved to Lisbon in May."}'),
)


def tried(
    server: ScriptedOpenAI,
    *replies: Reply,
    key: str = "",
    address_range: AddressRange = AddressRange.ANYWHERE,
) -> Trial:
    server.script(*replies)
    return try_model(
        Endpoint(server.base_url, key or server.api_key, server.model, address_range), CAPABILITIES
    )


def outcomes(found: Trial) -> str:
    return " ".join(f"{step}:{found.outcomes[step]}" for step in model_check.STEPS)


ALL = "reachable:works key:works model:works streams:works"


def test_all_of_it_works(scripted_openai: ScriptedOpenAI) -> None:
    found = tried(scripted_openai, Answer("rea", "dy"), CALLED, JSON)
    assert outcomes(found) == f"{ALL} tools:works json:works"
    assert found.answers and found.first_piece is not None and found.seconds >= found.first_piece


def test_chatting_works_and_some_of_the_rest(scripted_openai: ScriptedOpenAI) -> None:
    for replies, tools, json in (
        ([Answer("ready"), Answer("It is noon."), Answer("Moved.")], "fails", "fails"),
        ([Answer("ready"), Answer(calls=[Call("other", {})]), Answer("[1]")], "fails", "fails"),
        (
            [Answer("ready"), Answer(calls=[Call("get_time", "{not json")]), Answer('{"fact": 5}')],
            "fails",
            "fails",
        ),
        ([Answer("ready"), Failure(400, "tools are not supported"), Answer("noon"), JSON], "fails", "works"),
        ([Answer("ready"), CALLED, Answer('```json\n{"fact": "Moved."}\n```')], "works", "works"),
    ):
        found = tried(scripted_openai, *replies)
        assert found.answers, replies
        assert (found.outcomes["tools"], found.outcomes["json"]) == (tools, json), replies


def test_how_far_it_came(scripted_openai: ScriptedOpenAI) -> None:
    for reply, step, code in (
        (Failure(401, "no"), "key", "model_refused"),
        (Failure(404, "no such model"), "model", "model_not_found"),
        (Failure(302, headers={"location": "https://elsewhere.example"}), "streams", "model_moved"),
        (Failure(400, "no"), "streams", "model_bad_request"),
        (Raw(b"<html>hello</html>", "text/html"), "streams", "model_bad_reply"),
        (Answer("half", finish_reason=None, cut=True), "streams", "model_cut"),
        (Answer(finish_reason="content_filter"), "streams", "content_filtered"),
    ):
        scripted_openai.unscript()
        found = tried(scripted_openai, reply, reply, reply)
        at = model_check.STEPS.index(step)
        assert [found.outcomes[each] for each in model_check.STEPS[:at]] == ["works"] * at, code
        assert found.outcomes[step] == "fails" and found.errors[step].code == code
        assert {found.outcomes[each] for each in model_check.STEPS[at + 1 :]} == {"untried"}, code
        assert not found.answers, code


def test_nobody_there(scripted_openai: ScriptedOpenAI) -> None:
    untried = " ".join(f"{step}:untried" for step in model_check.STEPS[1:])
    for reply in (Drop(), Failure(503, "starting")):
        scripted_openai.unscript()
        found = tried(scripted_openai, reply, reply, reply)
        assert outcomes(found) == f"reachable:fails {untried}", reply


def test_a_wrong_key(scripted_openai: ScriptedOpenAI) -> None:
    assert tried(scripted_openai, key="wrong").errors["key"].code == "model_refused"


def test_an_address_that_may_not_be_reached(scripted_openai: ScriptedOpenAI) -> None:
    found = tried(scripted_openai, address_range=AddressRange.PUBLIC)
    assert found.errors["reachable"].code == "model_address_refused"
    assert scripted_openai.connections == 0


def test_it_waits_so_long_and_no_longer(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_check, "TRIAL_SECONDS", 0.3)
    found = tried(scripted_openai, Answer("ready"), Hang())
    assert found.outcomes["tools"] == "fails" and found.errors["tools"].code == "model_timeout"
    assert found.outcomes["json"] == "untried" and found.answers


def test_one_that_is_slow_to_its_end_answers_all_the_same(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model on a CPU, which writes more than requested."""
    monkeypatch.setattr(model_check, "TRIAL_SECONDS", 0.7)
    found = tried(scripted_openai, Answer("ready", HOLD))
    assert outcomes(found) == f"{ALL} tools:fails json:untried"
    assert found.answers and found.errors["tools"].code == "model_timeout"
