"""Runs as rows and jobs: any worker takes the next step, and after a crash another continues from the saved state."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import Run, RunMode, RunStatus, RunStep
from chat.runs import run_entries, transitions, worker, workspace_tools
from chat.runs.budget import Lost
from chat.runs.run_entries import MemoryKind, StoredRunEntries
from chat.runs.services import RunRequest, rerun, resume_run, start_run, stop_run
from chat.runs.step import Outcome
from chat.runs.transitions import ClaimedStep, claim_next_step
from chat.runs.worker import work
from chat.tools import memory as memory_tools
from memories.models import Memory
from memories.writing.gate import delete_memory
from memoryhub.errors import Conflict, Forbidden, Invalid
from tests.conftest import Cast
from tests.factories import make_memory, make_user, make_workspace
from tests.fakes.openai_server import Answer, Call, Failure, Received, ScriptedOpenAI
from workspaces.access import get_workspace
from workspaces.models import Membership, User, Workspace

PLAN = {
    "tasks": [
        {"id": "find", "title": "Find", "description": "Find offers."},
        {"id": "check", "title": "Check", "description": "Check the rules."},
        {"id": "report", "title": "Report", "description": "Report it.", "depends_on": ["find", "check"]},
    ]
}


@pytest.fixture
def place(cast: Cast) -> Workspace:
    return get_workspace(cast.owner, cast.workspace.public_id)


def begin(place: Workspace, by: User, **wanted: Any) -> Run:
    values = {"objective": "Compare the offers. The cheapest offer costs 7 euros.", "plan": PLAN} | wanted
    return start_run(place, RunRequest(**values), by=by, now=timezone.now())


def go(run: Run) -> Run:
    work(seconds=30, at_once=1)
    run.refresh_from_db()
    return run


def answering(request: Received) -> Any:
    """A model that plans on request, saves what it finds, and hands in results."""
    asked = next(str(said["content"]) for said in request.messages if said["role"] == "user")
    if "Split it into the fewest tasks" in request.messages[0]["content"]:
        return Answer(calls=[Call("finish_step", {"result": PLAN})])
    if asked.startswith("Find") and not request.tool_results:
        saved = Call("x_save_memory", {"content": "The cheapest offer costs 7 euros"}, id="save")
        wrote = Call("memory_write", {"key": "cheapest", "value": 7}, id="write")
        return Answer(calls=[saved, wrote])
    if asked.startswith("Report") and not request.tool_results:
        return Answer(calls=[Call("memory_read", {"keys": ["task:find", "task:check"]}, id="read")])
    return Answer(f"Done: {asked.splitlines()[0]}")


@pytest.fixture
def model(scripted_model: ScriptedOpenAI) -> ScriptedOpenAI:
    scripted_model.respond = answering
    return scripted_model


def test_an_objective_is_planned_and_worked_off(model: ScriptedOpenAI, place: Workspace, cast: Cast) -> None:
    run = go(begin(place, cast.owner, plan=None, tools=["x_save_memory"], inputs={"city": "Bern"}))
    assert (run.status, run.error) == (RunStatus.DONE, "")
    assert [(task.ref, task.status) for task in run.tasks.all()] == [
        (n, "done") for n in ("find", "check", "report")
    ]
    entries = {entry.key: entry for entry in run.entries.all()}
    assert set(entries) == {
        "input:city", "step::plan", "step:find", "task:find", "shared:cheapest", "step:check", "task:check",
        "step:report", "task:report",
    }  # fmt: skip
    assert json.loads(entries["task:report"].json) == "Done: Report it."
    assert (run.rounds, run.tokens_in, run.tokens_out) == (6, 6 * 9, 6 * 3)  # the server's figures
    assert len(run.memory_ids) == 1 and Memory.objects.get(public_id=run.memory_ids[0]).author == cast.owner
    kinds = list(run.events.values_list("kind", flat=True))
    assert kinds.count("memory") == 2 and kinds.count("tool") == 3 and kinds[-1] == "run"
    assert not any(step.transcript for step in run.steps.all())


def test_reasoning_without_its_opening_tag_is_no_result(
    scripted_model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    scripted_model.respond = lambda request: Answer(
        "Let me see", " what it costs.\n</think>\n", "It costs 7 euros."
    )
    run = go(begin(place, cast.owner, plan=None, mode=RunMode.LOOP))
    assert [json.loads(entry.json) for entry in run.entries.filter(key="task:work")] == ["It costs 7 euros."]


class Killed(BaseException):
    """Simulates the death of a process: no handler for Exception runs."""


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Yield a list whose only item is the number of saves (transcripts, entries, memories, steps) before the process
    dies.
    """
    left = [10_000]

    def count(original: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            done = original(*args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return done

        return counted

    monkeypatch.setattr(ClaimedStep, "beat", count(ClaimedStep.beat))
    monkeypatch.setattr(run_entries, "_save", count(run_entries._save))
    monkeypatch.setattr(worker, "complete_step", count(worker.complete_step))
    monkeypatch.setattr(memory_tools, "save_memory", count(memory_tools.save_memory))
    yield left


def dies(killing: list[int], after: int) -> bool:
    killing[0] = after
    try:
        work(seconds=30, at_once=1)
    except Killed:
        RunStep.objects.filter(status="running").update(beat_at=timezone.now() - timedelta(minutes=1))
        return True
    return False


@pytest.mark.parametrize(("mode", "stride"), [(RunMode.PLAN, 5), (RunMode.TEAM, 8)])
def test_killed_at_any_moment_a_run_goes_on_and_does_nothing_twice(
    model: ScriptedOpenAI, place: Workspace, cast: Cast, killing: list[int], mode: str, stride: int
) -> None:
    """The process dies after every few saves: of transcripts, entries, memories and steps."""
    made = model.respond
    if mode == RunMode.TEAM:
        model.respond = lambda request: handed_in(made(request))
    whole, after = 0, 1
    while True:
        Memory.objects.all().delete()
        run = begin(place, cast.owner, mode=mode, tools=["x_save_memory"])
        before = len(model.chat_requests)
        died = dies(killing, after)
        killing[0] = 10_000
        go(run)
        asked = len(model.chat_requests) - before
        assert run.status == RunStatus.DONE, (after, run.error)
        assert json.loads(run.entries.get(key="task:report").json) == "Done: Report it."
        assert run.memory_ids == [Memory.objects.get().public_id]  # saved once, and listed with the run
        assert run.entries.get(key="shared:cheapest").json == "7"
        if not died:
            whole = asked
            break
        assert asked <= 6, after  # the five replies, and at most one of them a second time
        after += stride
    assert whole == 5 and after > 10


def test_a_call_made_again_saves_nothing_that_was_undone_meanwhile(
    model: ScriptedOpenAI, place: Workspace, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(place, cast.owner, mode="loop", plan=None, tools=["x_save_memory"],
                objective="Find offers. The cheapest offer costs 7 euros.")  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(workspace_tools, "record_saved", dying)
        with pytest.raises(Killed):
            work(seconds=30, at_once=1)
    RunStep.objects.update(beat_at=timezone.now() - timedelta(minutes=1))
    delete_memory(Memory.objects.get(), by=cast.owner, now=timezone.now())
    go(run)
    saved = Memory.objects.get()
    assert run.status == "done" and saved.deleted_at is not None and run.memory_ids == [saved.public_id]


def dying(*args: object) -> None:
    raise Killed


def handed_in(answer: Answer) -> Answer:
    """Turn an answer into the finishing call of a teammate."""
    if answer.calls:
        return answer
    return Answer(calls=[Call("finish_step", {"result": "".join(map(str, answer.pieces))})])


def test_who_was_taken_over_can_write_nothing_more(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    run = begin(place, cast.owner)
    now = timezone.now()
    first = claim_next_step(now=now)
    assert first is not None and claim_next_step(now=now) is not None  # the other task
    assert claim_next_step(now=now) is None
    later = now + timedelta(minutes=1)
    again = claim_next_step(now=later)
    assert again is not None and again.pk == first.pk and again.lease == 2
    zombie = ClaimedStep(first)
    zombie.memory.set("shared:late", MemoryKind.SHARED, 1)
    with pytest.raises(Lost):
        zombie.save()
    zombie.memory.set("shared:late", MemoryKind.SHARED, 1)
    with pytest.raises(Lost):
        worker.complete_step(zombie, Outcome(True, "late"), now=later)
    zombie.put_back(now=later)
    again.refresh_from_db()
    assert again.status == "running" and not run.entries.filter(key="shared:late").exists()


def test_what_one_process_writes_the_others_see(place: Workspace, cast: Cast, model: ScriptedOpenAI) -> None:
    run = begin(place, cast.owner)
    here, there = StoredRunEntries(run_pk=run.pk), StoredRunEntries(run_pk=run.pk)
    first = here.set("shared:a", MemoryKind.SHARED, "\x00")
    here.keep()
    assert there.get_value("shared:a") == "\x00"
    there.set("shared:a", MemoryKind.SHARED, [1])
    there.keep()
    entry = here.get("shared:a")
    assert entry is not None and entry.value == [1] and [e.key for e in here.snapshot()] == ["shared:a"]
    assert abs(entry.created_at - first.created_at) < timedelta(milliseconds=1)
    there.set("step:b", MemoryKind.STEP_RESULT, 2)
    there.keep()
    assert here.clear(key_prefix="shared:") == 1 and here.clear(kind="input") == 0
    assert [entry.key for entry in run.entries.all()] == ["step:b"] and here.count() == 1
    assert here.get("shared:a") is None
    here.set("shared:a", MemoryKind.SHARED, 3)
    here.keep()
    assert there.get_value("shared:a") == 3 and there.clear() == 2 and not run.entries.exists()


def test_people_take_turns(model: ScriptedOpenAI, place: Workspace, cast: Cast) -> None:
    """A user with ten started steps does not delay the next user until they are done."""
    for _ in range(5):
        begin(place, cast.owner)
    for _ in range(2):
        begin(place, cast.editor)
    taken = [claim_next_step(now=timezone.now()) for _ in range(8)]
    assert [step.user_id for step in taken if step].count(cast.editor.pk) == 4
    runs = [step.run_id for step in taken if step and step.user_id == cast.owner.pk]
    assert len(set(runs)) == 4  # the user's runs take turns as well


def test_stopped_run_continues_where_it_was(
    model: ScriptedOpenAI, place: Workspace, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop after this many replies, each of which is reused when the run continues."""
    original, left = worker.asking, [0]

    def asking(llm: Any, beat: Any, meter: Any) -> Any:
        ask = original(llm, beat, meter)

        def asked(*args: Any, **kwargs: Any) -> Any:
            reply = ask(*args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                stop_run(run, by=cast.owner, now=timezone.now())
            return reply

        return asked

    monkeypatch.setattr(worker, "asking", asking)
    for after in (1, 2, 5):  # it stops with calls to make, at the end of a step, and of the run
        run, before, left[0] = begin(place, cast.owner), len(model.chat_requests), after
        assert go(run).status == RunStatus.STOPPED, after
        assert len(model.chat_requests) - before == run.rounds == after
        assert claim_next_step(now=timezone.now()) is None
        with pytest.raises(Conflict):
            stop_run(run, by=cast.owner, now=timezone.now())
        resume_run(run, by=cast.owner, now=timezone.now())
        assert go(run).status == RunStatus.DONE, after
        assert len(model.chat_requests) - before == run.rounds == 5, "no reply was requested again"
        assert run.events.filter(kind="reply").count() == 5


def test_a_spent_budget_stops_a_run_until_it_gets_more(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    run = go(begin(place, cast.owner, budget={"rounds": 2}))
    assert run.status == RunStatus.STOPPED and "replies" in run.error
    resume_run(run, by=cast.owner, now=timezone.now(), budget={"rounds": 50})
    assert go(run).status == RunStatus.DONE
    late = begin(place, cast.owner)
    Run.objects.filter(pk=late.pk).update(deadline_at=timezone.now())
    assert "time" in go(late).error


def test_a_plan_can_be_looked_at_and_changed_first(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    run = go(begin(place, cast.owner, plan=None, reviews_plan=True))
    assert run.status == RunStatus.WAITING and run.tasks.count() == 3
    with pytest.raises(Invalid):
        resume_run(run, by=cast.owner, now=timezone.now(), plan={"tasks": [{"id": "a", "depends_on": ["a"]}]})
    resume_run(run, by=cast.owner, now=timezone.now(), plan={"tasks": [{"id": "only", "title": "Only"}]})
    assert go(run).status == RunStatus.DONE
    assert [task.ref for task in run.tasks.all()] == ["only"]


def test_a_run_is_done_again_from_a_step(model: ScriptedOpenAI, place: Workspace, cast: Cast) -> None:
    """Steps before it keep their results and what they published."""
    answers = model.respond

    def respond(request: Received) -> Answer | Failure:
        asked = request.messages[1]["content"].split()[0]
        if asked in {"Find", "Check"} and not request.tool_results:
            return Answer(calls=[Call("memory_write", {"key": asked.lower(), "value": asked, "title": "It"})])
        assert answers is not None
        return answers(request)

    model.respond = respond
    run = go(begin(place, cast.owner, inputs={"city": "Bern"}))
    shared = run.entries.filter(kind="shared").values_list("key", flat=True)
    assert set(shared) == {"shared:find", "shared:check"}
    model.respond, before = answers, len(model.chat_requests)
    again = rerun(run, by=cast.owner, now=timezone.now(), from_step="check")
    assert go(again).status == RunStatus.DONE and again.pk != run.pk
    asked = [request.messages[1]["content"].split()[0] for request in model.chat_requests[before:]]
    assert asked == ["Check", "Report", "Report"]
    assert again.entries.filter(key__in=["task:find", "input:city"]).count() == 2
    kept = again.entries.get(kind="shared")
    assert (kept.key, kept.json, kept.title) == ("shared:find", '"Find"', "It")
    with pytest.raises(Invalid):
        rerun(run, by=cast.owner, now=timezone.now(), from_step="nothing")


def test_a_failing_model_is_asked_again_and_then_the_run_has_failed(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    model.respond = lambda request: Failure(400, "no")
    run = go(begin(place, cast.owner))
    assert run.status == RunStatus.FAILED and run.error
    assert [task.status for task in run.tasks.all()] == ["failed", "failed", "skipped"]
    model.respond = lambda request: Failure(503, "later", headers={"retry-after": "0"})
    run = go(begin(place, cast.owner))
    assert run.status == RunStatus.RUNNING and run.steps.filter(status="ready").count() == 2


def test_who_may_no_longer_write_runs_nothing_more(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    run = begin(get_workspace(cast.editor, place.public_id), cast.editor)
    Membership.objects.filter(user=cast.editor, workspace=place).delete()
    assert go(run).status == RunStatus.FAILED and not model.chat_requests


def test_hostile_characters_of_a_model_stop_no_run(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    """Odd characters in every argument of every tool, in keys and values, plan and result are reported or left out."""
    run = run_with_hostile(model, place, cast, "multi-agent", "a\x00b")
    assert [entry.key for entry in run.entries.filter(kind="shared")] == ["shared:ab"]
    run = run_with_hostile(model, place, cast, "multi-agent", "a\ud800b")  # half a character
    assert not run.entries.filter(kind="shared").exists()


def run_with_hostile(model: ScriptedOpenAI, place: Workspace, cast: Cast, mode: str, odd: str) -> Run:
    """Return a finished run whose model used this text wherever it can."""
    calls = [
        Call("memory_write", {"key": odd, "value": {odd: odd}, "title": odd, "description": odd}),
        Call("memory_read", {"keys": [odd]}),
        Call("memory_list", {"key_prefix": odd, "sources": [odd], "kind": ["shared"]}),
        Call("x_recall_memory", {"query": odd}),
        Call("x_save_memory", {"content": f"The office opens at {odd}"}),
        Call("workspace_search", {"query": odd}),
    ]
    team = [
        Call("send_message", {"text": odd}),
        Call("add_task", {"title": odd, "description": odd, "depends_on": [odd]}),
    ]
    calls += team if mode == "multi-agent" else []

    def respond(request: Received) -> Answer:
        if "Split it into the fewest tasks" in request.messages[0]["content"]:
            tasks = [{"id": "a", "title": odd, "description": odd}]
            return Answer(calls=[Call("finish_step", {"result": {"tasks": tasks, odd: odd}})])
        made = len(request.tool_results)
        if made < len(calls):
            return Answer(calls=[calls[made]])
        if "finish_step" in request.tool_names:
            return Answer(calls=[Call("finish_step", {"result": {odd: odd}})])
        return Answer(odd)

    model.respond = respond
    run = go(begin(place, cast.owner, plan=None, mode=mode, tools=["x_recall_memory", "x_save_memory"]))
    assert (run.status, run.error) == (RunStatus.DONE, "")
    begin(place, cast.owner, plan={"tasks": [{"id": "a", "title": odd, "description": odd}]})
    Run.objects.exclude(pk=run.pk).delete()
    return run


def test_personal_memories_of_who_started_it_are_in_no_run(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    make_memory("My rent is 900 euros", cast.owner, scope="user")
    make_memory("The office rent is 5000 euros", cast.owner, place)
    tool = Call("x_recall_memory", {"query": "What is the rent?"})
    model.respond = lambda request: Answer("done") if request.tool_results else Answer(calls=[tool])
    go(begin(place, cast.owner, mode="loop", plan=None))
    assert "5000" in model.chat_requests[-1].tool_results[0]
    assert "900" not in model.chat_requests[-1].tool_results[0]


def test_invalid_request_is_refused_before_a_run_starts(
    model: ScriptedOpenAI, place: Workspace, cast: Cast
) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"objective": " "}, "objective"),
        ({"objective": "x" * 8_001}, "objective"),
        ({"mode": "magic"}, "mode"),
        ({"tools": ["rm"]}, "tools"),
        ({"inputs": {"a[0]": 1}}, "inputs"),
        ({"inputs": {"a": float("nan")}}, "inputs"),
        ({"budget": {"tokens": 0}}, "budget.tokens"),
        ({"budget": {"minutes": True}}, "budget.minutes"),
        ({"budget": {"money": 1}}, "budget.money"),
        ({"plan": {"tasks": [{"id": "a", "depends_on": ["b"]}]}}, "plan"),
    ]
    for wanted, field in wrong:
        with pytest.raises(Invalid) as refused:
            begin(place, cast.owner, **wanted)
        assert field in refused.value.fields and not Run.objects.exists()


def test_without_a_model_that_calls_tools_no_run_is_started(
    place: Workspace, cast: Cast, settings: Settings
) -> None:
    settings.LLM_HAS_TOOLS = False
    with pytest.raises(Invalid) as refused:
        begin(place, cast.owner)
    assert refused.value.code == "model_cannot"
    with pytest.raises(Forbidden):
        begin(get_workspace(cast.viewer, place.public_id), cast.viewer)


def test_a_hundred_runs_of_many_people_are_taken_up_without_reading_them_all(
    model: ScriptedOpenAI, django_assert_max_num_queries: Any, db: None
) -> None:
    people = [make_user() for _ in range(3)]
    for person in people:
        place = get_workspace(person, make_workspace(owner=person).public_id)
        for _ in range(5):
            begin(place, person)
    with django_assert_max_num_queries(8):
        assert claim_next_step(now=timezone.now())
    assert transitions.claimable_steps(timezone.now()).count() == 29
