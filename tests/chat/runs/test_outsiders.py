"""Runs under hostile input: plans and inputs made to break them, concurrent requests, unbounded results."""

import json
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Run
from chat.runs import services as runs_module
from chat.runs.services import RunRequest, resume_run, start_run, stop_run
from chat.runs.worker import work
from memoryhub.errors import Conflict
from tests.conftest import Cast
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.races import Pause, Work, meanwhile
from tests.signing_in import signed_in
from workspaces.access import get_workspace

pytestmark = pytest.mark.django_db
MEGABYTE = "é" * 500_000
LONG = "word " * 39_000  # about the longest result that a model can hand in
ONE = {"tasks": [{"id": "a", "title": "A"}]}


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def tasks(*given: dict[str, Any]) -> str:
    return json.dumps({"tasks": given})


def test_a_plan_made_to_break_it_is_refused_by_name(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    client = signed_in(cast.editor)
    for plan in (
        nested(400),
        f'{{"tasks": {nested(400)}}}',
        tasks(*({"id": f"t{n}"} for n in range(51))),
        tasks({"id": "a", "steps": [{"id": f"s{n}", "instructions": "x"} for n in range(201)]}),
        tasks({"id": "a", "depends_on": ["a"]}),
        tasks({"id": "a"}, {"id": "a"}),
        tasks({"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}),
        tasks({"id": "ключ"}),
        tasks({"id": "a[0]"}),
        tasks({"id": ":plan"}),
        tasks({"id": "../a"}),
        tasks({"id": "a\u202eb"}),
        tasks({"id": "a", "title": "x" * 201}),
        tasks({"id": "a", "description": MEGABYTE}),
        tasks({"id": "a", "member": "nobody"}),
        tasks({"id": "a", "steps": [{"id": "s", "instructions": "x", "over": "nowhere"}]}),
        tasks({"id": "a", "steps": [{"id": "s", "instructions": "x", "schema": {"pattern": "(a+)+$"}}]}),
        tasks({"id": "a", "steps": {"id": "s"}}),
        tasks(),
        '{"tasks": 1e400}',
        '"tasks"',
    ):
        body = f'{{"objective": "x", "plan": {plan}}}'
        url = f"/chat/api/workspaces/{cast.workspace.public_id}/runs"
        answer = client.post(url, body, content_type="application/json")
        assert answer.status_code in (400, 413, 422), answer.content[:300]
        assert "error" in answer.json() and not Run.objects.exists()


def test_input_with_any_name_is_stored_or_refused(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    client, place = signed_in(cast.editor), f"workspaces/{cast.workspace.public_id}/runs"
    given: dict[str, tuple[dict[str, Any], bool]] = {
        "unicode": ({"ключ": "значение", "键": "值", "a b/..": "🦓", "task:x": 1, "e\u0301": None}, True),
        "long": ({"k" * 200: 1}, True),
        "too long": ({"k" * 201: 1}, False),
        "empty": ({"": 1}, False),
        "NUL": ({"a\x00b": 1}, False),
        "half a character": ({"a\ud800b": 1}, False),
        "megabyte": ({"big": MEGABYTE}, False),
        "too many": ({str(number): number for number in range(51)}, False),
    }
    for case, (inputs, taken) in given.items():
        body = json.dumps({"objective": "x", "plan": ONE, "inputs": inputs})
        answer = client.post(f"/chat/api/{place}", body, content_type="application/json")
        assert answer.status_code in ((202,) if taken else (400, 413, 422)), (case, answer.content[:300])
        assert Run.objects.exists() is taken, case
        for name, value in inputs.items() if taken else ():
            run, asked = answer.json()["id"], {"key": f"input:{name}"}
            found = client.get(f"/chat/api/{place}/{run}/memory", asked).json()["items"]
            assert [(entry["key"], entry["value"]) for entry in found] == [(f"input:{name}", value)]
            assert client.get(f"/{place}/{run}/entry/", asked).status_code == 200
        Run.objects.all().delete()


def test_the_longest_result_is_kept_whole_and_shown_in_part(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    step = {"id": "s", "instructions": "Write.", "schema": {"type": "string"}}
    scripted_model.respond = lambda request: Answer(calls=[Call("finish_step", {"result": LONG})])
    place = get_workspace(cast.owner, cast.workspace.public_id)
    wanted = RunRequest("Write much", plan={"tasks": [{"id": "a", "steps": [step]}]})
    run = start_run(place, wanted, by=cast.owner, now=timezone.now())
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert run.status == "done" and json.loads(run.entries.get(key="task:a").json) == LONG
    client, url = signed_in(cast.viewer), f"/workspaces/{place.public_id}/runs/{run.public_id}/"
    shown = client.get(url).content.decode()
    assert "word " * 1_000 in shown and len(shown) < 150_000 and "Only the beginning is shown." in shown
    assert len(client.get(f"{url}entry/", {"key": "task:a"}).content) < 30_000
    assert client.get(f"/chat/api{url.rstrip('/')}").json()["result"] == LONG


@pytest.mark.django_db(transaction=True)
def test_of_two_who_go_on_at_once_one_does_and_the_other_hears_it(
    scripted_model: ScriptedOpenAI, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both continue with a plan of their own: only the first one's plan is executed."""
    place, now = get_workspace(cast.owner, cast.workspace.public_id), timezone.now()
    wanted = RunRequest("Do it", plan=ONE, reviews_plan=True)
    run, pause, others = start_run(place, wanted, by=cast.owner, now=now), Pause(), list[Work]()

    def go(task: str) -> Run:
        return resume_run(run, by=cast.owner, now=now, plan={"tasks": [{"id": task}]})

    def another() -> None:
        others.append(Work(lambda: go("second")))
        assert others[0].waits_for_a_lock()

    monkeypatch.setattr(runs_module, "advance_run", pause.after(runs_module.advance_run))
    first = meanwhile(pause, lambda: go("first"), another)
    assert isinstance(first, Run) and isinstance(others[0].end(), Conflict)
    run.refresh_from_db()
    assert run.status == "running" and [task["id"] for task in run.plan["tasks"]] == ["first"]
    assert [step.ref for step in run.steps.all()] == ["first"]
    stops = [Work(lambda: stop_run(run, by=cast.owner, now=now)) for _ in range(2)]
    assert sorted(type(each.end()).__name__ for each in stops) == ["Conflict", "Run"]
