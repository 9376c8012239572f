"""A run that begins with entries in its memory, given with its request over REST."""

import json
from typing import Any

import pytest

from chat.models import Run
from chat.runs.worker import work
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.fakes.openai_server import Answer, Call, Received, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = {"tasks": [{"id": "report", "title": "Report", "description": "Report."}]}
GIVEN: list[dict[str, Any]] = [
    {"key": "task:before", "value": {"found": ["alpha"]}, "title": "Before", "source": "before"},
    {"key": "step:before", "kind": "step_result", "value": None, "created_at": "2026-01-02T03:04:05Z"},
    {"key": "input:city", "value": "Bern"},
    {"key": "shared:each[0]", "value": "x" * 60_000, "description": None, "value_bytes": 60_002},
]


def runs_of(cast: Cast) -> str:
    return f"workspaces/{cast.workspace.public_id}/runs"


def start(cast: Cast, memory: Any, **more: Any) -> Any:
    body = {"objective": "Go on", "plan": PLAN, "memory": memory} | more
    return Api(cast.owner).post(runs_of(cast), body)


def memory_of(cast: Cast, run_id: str) -> dict[str, Any]:
    api, address = Api(cast.viewer), f"{runs_of(cast)}/{run_id}/memory"
    keys = [entry["key"] for entry in api.get(address).json()["items"]]
    return {key: api.get(address, key=key).json()["items"][0] for key in keys}


def test_a_run_begins_with_the_entries_of_its_request(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    started = start(cast, GIVEN, inputs={"year": 2026})
    assert started.status_code == 202, started.content
    stored = memory_of(cast, started.json()["id"])
    assert set(stored) == {*(entry["key"] for entry in GIVEN), "input:year"}
    assert stored["step:before"]["kind"] == "step_result"
    assert stored["step:before"]["created_at"].startswith("2026-01-02T03:04:05")
    assert (stored["task:before"]["value"], stored["task:before"]["title"]) == (
        {"found": ["alpha"]},
        "Before",
    )

    again = start(cast, list(stored.values()))  # entries of one run can be given to another
    restored = memory_of(cast, again.json()["id"])
    assert restored == stored


def test_the_first_step_lists_them(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    def respond(request: Received) -> Answer:
        return Answer("Done.") if request.tool_results else Answer(calls=[Call("memory_list", {})])

    scripted_model.respond = respond
    start(cast, GIVEN)
    work(seconds=20, at_once=1)
    listed = json.loads(scripted_model.chat_requests[-1].tool_results[0])
    assert {entry["key"] for entry in listed["entries"]} == {entry["key"] for entry in GIVEN}


def test_a_run_done_again_begins_with_them_too(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    overwritten = {"key": "step:report", "value": "old"}
    run_id = start(cast, [*GIVEN, overwritten], inputs={"year": 2026}).json()["id"]
    scripted_model.respond = lambda request: Answer("New.")
    work(seconds=20, at_once=1)
    again = Api(cast.owner).post(f"{runs_of(cast)}/{run_id}/again").json()
    begun = memory_of(cast, again["id"])
    assert set(begun) == {*(entry["key"] for entry in GIVEN), "input:year"}
    assert begun["shared:each[0]"]["value"] == "x" * 60_000


def test_entries_that_cannot_be_are_refused_by_name(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    for memory, field in (
        ({}, "memory"),
        ([5], "memory"),
        ([{"key": "x", "value": 1}], "memory.0.key"),
        ([{"key": "other:x", "value": 1}], "memory.0.key"),
        ([{"key": "task: ", "value": 1}], "memory.0.key"),
        ([{"key": "task:x\x00", "value": 1}], "memory"),
        ([{"key": "task:" + "x" * 300, "value": 1}], "memory"),
        ([{"key": "task:x"}], "memory"),
        ([{"key": "task:x", "value": 1, "kind": "shared"}], "memory.0.kind"),
        ([{"key": "task:x", "value": 1, "kind": "odd"}], "memory"),
        ([{"key": "task:x", "value": 1}, {"key": "task:x", "value": 2}], "memory.1.key"),
        ([{"key": "task:x", "value": 1, "created_at": "yesterday"}], "memory"),
        ([{"key": "task:x", "value": 1, "owner": "me"}], "memory"),
        ([{"key": f"task:{n}", "value": 1} for n in range(2001)], "memory"),
    ):
        refused = start(cast, memory)
        assert refused.status_code == 422, refused.content
        assert [name for name in error_of(refused)["fields"] if name.startswith(field)]
        assert not Run.objects.exists()
