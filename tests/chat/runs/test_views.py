"""Runs over REST and on their pages: started, watched, stopped, continued; stored text is escaped."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from chat.models import Run
from chat.runs.events import follow_run
from chat.runs.run_entries import MemoryKind, StoredRunEntries
from chat.runs.services import RunRequest, start_run, stop_run
from chat.runs.transitions import claim_next_step
from chat.runs.worker import work
from chat.tasks import work_on_runs
from memories.models import Memory
from tests.admin_pages import staff
from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.access import get_workspace

HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }}"
PLAN = {
    "tasks": [{"id": "a", "title": HOSTILE, "description": "Do <b>a</b>."}, {"id": "b", "depends_on": ["a"]}]
}


@pytest.fixture
def owner(cast: Cast) -> Client:
    return signed_in(cast.owner)


def begin(cast: Cast, **wanted: Any) -> Run:
    place = get_workspace(cast.owner, cast.workspace.public_id)
    values = {"objective": HOSTILE, "plan": PLAN} | wanted
    return start_run(place, RunRequest(**values), by=cast.owner, now=timezone.now())


def test_a_program_starts_a_run_and_reads_what_came_of_it(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/runs"
    body = {"objective": "Compare", "plan": PLAN, "inputs": {"city": "Bern"}, "budget": {"tokens": 50_000}}
    headers = {"Idempotency-Key": "once"}
    started = owner.post(url, body, content_type="application/json", headers=headers)
    assert started.status_code == 202 and started.json()["status"] == "running"
    again = owner.post(url, body, content_type="application/json", headers=headers)
    assert again.json()["id"] == started.json()["id"]
    run_url = f"{url}/{started.json()['id']}"
    stopped = owner.post(f"{run_url}/stop")
    assert (stopped.status_code, stopped.json()["status"]) == (202, "stopped")
    assert owner.post(f"{run_url}/resume", {}, content_type="application/json").status_code == 202
    scripted_model.respond = lambda request: Answer("Done.")
    work(seconds=20, at_once=1)
    done = owner.get(run_url).json()
    assert (done["status"], done["result"], done["error"]) == ("done", "Done.", "")
    assert [(task["id"], task["status"], len(task["steps"])) for task in done["tasks"]] == [
        ("a", "done", 1),
        ("b", "done", 1),
    ]
    assert done["used"]["rounds"] == 2 and done["budget"]["tokens"] == 50_000
    memory = owner.get(f"{run_url}/memory?limit=2").json()
    assert memory["has_more"] and memory["items"][0] | {"created_at": ""} == {
        "key": "input:city", "kind": "input", "title": "city", "description": None, "source": None,
        "value_bytes": 6, "created_at": "", "value": None,
    }  # fmt: skip
    assert owner.get(f"{run_url}/memory?key=task:b").json()["items"][0]["value"] == "Done."
    assert [item["id"] for item in owner.get(url).json()["items"]] == [done["id"]]


def test_hostile_bodies_are_refused_by_name(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    for body, code in (
        ({}, 422),
        ({"objective": 7}, 422),
        ({"objective": "x", "inputs": []}, 422),
        ({"objective": "x", "budget": "much"}, 422),
        ({"objective": "x", "budget": {"tokens": "5"}}, 422),
        ({"objective": "x", "plan": [[[[]]]]}, 422),
        (
            {
                "objective": "x",
                "plan": {
                    "tasks": [
                        {
                            "id": "a",
                            "steps": [{"id": "s", "instructions": "x", "schema": {"$ref": "file:///"}}],
                        }
                    ]
                },
            },
            422,
        ),
        ({"objective": "x", "mode": "plan", "tools": ["x" * 65]}, 422),
        ({"objective": "x", "unknown": 1}, 422),
        ("nonsense", 422),
    ):
        url = f"/chat/api/workspaces/{cast.workspace.public_id}/runs"
        answer = owner.post(url, json.dumps(body), content_type="application/json")
        assert answer.status_code == code and "error" in answer.json() and not Run.objects.exists()


def test_a_stranger_to_the_run_cannot_steer_it(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    run = begin(cast)
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/runs/{run.public_id}"
    for user, code in ((cast.editor, 403), (cast.viewer, 403), (cast.stranger, 404)):
        for verb in ("stop", "resume"):
            answer = signed_in(user).post(f"{url}/{verb}", {}, content_type="application/json")
            assert answer.status_code == code, (user, verb)
    other = cast.stranger.memberships.first()
    if other is not None:  # nor through another workspace
        elsewhere = f"/chat/api/workspaces/{other.workspace.public_id}/runs/{run.public_id}"
        assert signed_in(cast.stranger).get(elsewhere).status_code == 404


def test_the_pages_show_a_run_and_execute_nothing_of_it(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    result = Call("finish_step", {"result": HOSTILE})
    scripted_model.respond = lambda request: (
        Answer(calls=[result]) if "finish_step" in request.tool_names else Answer(HOSTILE)
    )
    run = begin(cast, mode="multi-agent")
    run_memory = StoredRunEntries(run_pk=run.pk)
    run_memory.set("shared:" + HOSTILE, MemoryKind.SHARED, HOSTILE, title=HOSTILE)
    run_memory.keep()
    memory = make_memory(HOSTILE, cast.owner, cast.workspace)
    Run.objects.filter(pk=run.pk).update(memory_ids=[memory.public_id])
    page = f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/"
    for _ in range(2):
        for url in (page, f"{page}live/", f"/workspaces/{cast.workspace.public_id}/runs/"):
            html = owner.get(url).content.decode()
            assert "<script>alert" not in html and "{{ 7" in html
        work(seconds=20, at_once=1)
    assert "Run again" in owner.get(page).content.decode()
    shown = owner.get(f"{page}entry/", {"key": "shared:" + HOSTILE})
    assert "&lt;script&gt;" in shown.content.decode()
    assert "Run again" not in signed_in(cast.viewer).get(page).content.decode()


def test_a_person_starts_a_run_changes_its_plan_and_lets_it_go(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    plan = Call("finish_step", {"result": {"tasks": [
        {"id": "a", "title": "A", "description": "Do a."},
        {"id": "b", "title": "B", "description": "Do b.", "depends_on": ["a"]},
    ]}})  # fmt: skip
    scripted_model.script(Answer(calls=[plan]))
    scripted_model.respond = lambda request: Answer("Done.")
    runs = f"/workspaces/{cast.workspace.public_id}/runs/"
    assert owner.post(runs, {"objective": " ", "mode": "plan", "tokens": 5}).status_code == 422
    form = {"objective": "Compare", "mode": "plan", "tokens": 100_000, "reviews_plan": "on"}
    page = owner.post(runs, form)["Location"]
    work(seconds=20, at_once=1)
    assert "This is the plan" in owner.get(page).content.decode()
    owner.post(f"{page}resume/", {"id": ["a", "b"], "text": ["", "Do b in French."]})
    work(seconds=20, at_once=1)
    run = Run.objects.get()
    assert run.status == "done" and [task.ref for task in run.tasks.all()] == ["b"]
    assert scripted_model.chat_requests[-1].last_user_text == "Do b in French."
    again = owner.post(f"{page}again/", {"from_step": "b"})["Location"]
    assert again != page and owner.get(again).status_code == 200


def test_what_a_run_saved_is_undone_on_its_page(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    """The page's button does it, only for users who may write, and only if the run saved something."""
    save = Call("x_save_memory", {"content": "The cheapest offer costs 7 euros"})
    scripted_model.respond = lambda request: Answer("Done.") if request.tool_results else Answer(calls=[save])
    objective = "Note what the cheapest offer costs: 7 EUR."
    run = begin(cast, mode="loop", objective=objective, plan=None, tools=["x_save_memory"])
    page = f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/"
    assert "Saved to memory" not in owner.get(page).content.decode()
    work(seconds=20, at_once=1)
    saved = Memory.objects.get()
    button = f"/workspaces/{cast.workspace.public_id}/memories/{saved.public_id}/delete/?as=run"
    shown, read = (signed_in(user).get(page).content.decode() for user in (cast.editor, cast.viewer))
    assert all("The cheapest offer costs 7 euros" in html for html in (shown, read))
    assert f'hx-post="{button}"' in shown and button not in read
    assert [signed_in(user).post(button).status_code for user in (cast.viewer, cast.stranger)] == [403, 404]
    undone = signed_in(cast.editor).post(button)
    assert undone.status_code == 200 and "Forgotten." in undone.content.decode()
    saved.refresh_from_db()
    assert saved.deleted_at is not None and "7 euros" not in owner.get(page).content.decode()
    assert Run.objects.get().memory_ids == [saved.public_id]  # the run's record stays


def test_a_stopped_run_is_at_nothing_and_says_by_title_what_comes_after_what(
    scripted_model: ScriptedOpenAI, cast: Cast, owner: Client
) -> None:
    run = begin(cast)
    page = f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/"
    assert claim_next_step(now=timezone.now())
    assert "Running" in owner.get(page).content.decode()
    stop_run(run, by=cast.owner, now=timezone.now())
    html = owner.get(page).content.decode()
    assert "Running" not in html and html.count("Stopped") == 3  # the run, its task, the step
    assert f"After {escape(HOSTILE)}" in html


@pytest.mark.django_db(transaction=True)
def test_a_run_is_followed_from_where_a_reader_was(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    from asgiref.sync import async_to_sync

    scripted_model.respond = lambda request: Answer("Done.")
    run = begin(cast)
    work_on_runs()  # in threads, as the queue's workers do it
    run.refresh_from_db()
    assert run.status == "done"

    async def told(after: int) -> list[str]:
        events = follow_run(cast.owner, cast.workspace.public_id, run, after=after)
        return [event async for event in events]

    whole = async_to_sync(told)(0)
    assert whole[-1].startswith("event: done") and sum("event: step" in event for event in whole) == 2
    middle = int(whole[1].split("\n")[0].removeprefix("id: "))
    assert async_to_sync(told)(middle) == whole[2:]
    assert "Done." not in "".join(whole)


def test_the_admin_lists_runs_without_what_they_say(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    run = begin(cast)
    failed, finished = begin(cast), begin(cast)
    Run.objects.filter(pk=finished.pk).update(status="done")
    Run.objects.filter(pk=failed.pk).update(status="failed", error="The model is away.")
    client, html = staff("view_run"), ""
    for status, shown in (("running", run), ("failed", failed)):
        html += client.get(f"/admin/chat/run/?status__exact={status}").content.decode()
        assert shown.public_id in html
    assert "The model is away." in html and finished.public_id not in html
    assert "alert(1)" not in client.get(f"/admin/chat/run/{run.pk}/change/").content.decode() + html
