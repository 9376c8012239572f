"""Permanent deletion reaches runs: entries, open steps, plans, boards, the names in the log."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Run
from chat.runs import worker
from chat.runs.run_entries import MemoryKind, StoredRunEntries
from chat.runs.services import RunRequest, save_template, start_run, stop_run
from chat.runs.worker import work
from memories.forgetting.for_good import forget_memories
from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_memory, make_workspace
from tests.fakes.openai_server import Answer, Call, Received, ScriptedOpenAI
from workspaces.access import get_workspace
from workspaces.models import User

pytestmark = pytest.mark.django_db
TEXT = "Olive <3 was ill in May"
PLAN = {"tasks": [{"id": "ill", "title": f"Note: {TEXT}", "description": f"Say that {TEXT.upper()}, once."}]}


def run_of(user: User, cast: Cast, **more: Any) -> Run:
    place = get_workspace(user, cast.workspace.public_id)
    wanted = RunRequest(
        **{"objective": "What was in May?", "plan": PLAN, "inputs": {"said": {TEXT: [TEXT]}}} | more
    )
    run = start_run(place, wanted, by=user, now=timezone.now())
    memory = StoredRunEntries(run_pk=run.pk)
    memory.set("shared:" + TEXT, MemoryKind.SHARED, f"It says: {TEXT}.", title=TEXT, description=TEXT)
    memory.keep()
    run.events.create(kind="memory", data={"op": "write", "keys": ["shared:" + TEXT]})
    return run


def said_in(run: Run) -> str:
    run.refresh_from_db()
    rows: list[Any] = [run.plan, run.board]
    for kept in (run.entries, run.steps, run.events, run.tasks):
        rows += [{n: str(v) for n, v in row.items()} for row in kept.values()]
    return json.dumps(rows, ensure_ascii=False).lower().replace("&lt;", "<")


def forget(memory: Memory, by: User) -> Any:
    return forget_memories([memory], by=by, now=timezone.now())


@pytest.mark.parametrize("mode", ["plan", "multi-agent"])
def test_a_text_forgotten_for_good_goes_from_the_runs_of_its_workspace(
    scripted_model: ScriptedOpenAI, cast: Cast, mode: str
) -> None:
    mine, theirs = run_of(cast.owner, cast, mode=mode), run_of(cast.editor, cast, mode=mode)
    memory = make_memory(TEXT, cast.owner, cast.workspace)
    templates = [save_template(run, run.public_id, by=run.user, now=timezone.now()) for run in (mine, theirs)]
    assert TEXT.lower() in said_in(mine) and TEXT.lower() in said_in(theirs)
    report = forget(memory, cast.owner)
    assert TEXT.lower() not in said_in(mine) + said_in(theirs)
    assert report.removed["entries of runs"] == 4
    for template in templates:
        template.refresh_from_db()
        assert template.plan["tasks"][0]["title"] == "Note: […]"
    scripted_model.respond = lambda request: (
        Answer(calls=[Call("finish_step", {"result": "Done."})])
        if "finish_step" in request.tool_names
        else Answer("Done.")
    )
    work(seconds=20, at_once=1)  # and the remaining steps can be done
    assert {run.status for run in Run.objects.all()} == {"done"}
    assert not any(TEXT.lower() in json.dumps(each.body).lower() for each in scripted_model.chat_requests)


def test_personal_texts_go_from_ones_own_runs_alone(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    """Otherwise a guess written into one's own run would reveal who forgets such a thing."""
    mine, guess = run_of(cast.owner, cast), run_of(cast.editor, cast)
    forget(make_memory(TEXT, cast.owner, scope="user"), cast.owner)
    assert TEXT.lower() not in said_in(mine) and TEXT.lower() in said_in(guess)
    forget(make_memory(TEXT, cast.editor, cast.workspace), cast.editor)  # others keep the words in their runs
    mine = run_of(cast.owner, cast)
    forget(make_memory(TEXT, cast.editor, cast.workspace), cast.editor)
    assert TEXT.lower() not in said_in(guess) and TEXT.lower() in said_in(mine)
    elsewhere = run_of(cast.editor, cast)
    forget(make_memory(TEXT, cast.stranger, make_workspace(owner=cast.stranger)), cast.stranger)
    assert TEXT.lower() in said_in(elsewhere)


def test_a_step_that_has_it_in_its_hands_loses_it(
    scripted_model: ScriptedOpenAI, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make_memory(TEXT, cast.owner, cast.workspace)

    def respond(request: Received) -> Answer:
        if not request.tool_results:
            return Answer(calls=[Call("x_recall_memory", {"query": "Who was ill?"})])
        return Answer("Nobody.")

    scripted_model.respond = respond
    run = run_of(cast.owner, cast, plan=None, mode="loop", inputs={})
    original, forgotten = worker.ClaimedStep.beat, list[str]()

    def beat(held: worker.ClaimedStep, **values: Any) -> None:
        original(held, **values)
        if not forgotten and "was ill in May" in json.dumps(values.get("transcript", "")):
            forgotten.append(said_in(run))
            forget(memory, cast.owner)

    monkeypatch.setattr(worker.ClaimedStep, "beat", beat)
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert forgotten and TEXT.lower() in forgotten[0] and TEXT.lower() not in said_in(run)
    assert run.status == "done" and run.steps.get().lease == 3  # its lease was lost, and it was taken again
    assert "was ill in May" not in json.dumps(scripted_model.chat_requests[-1].body)


def test_short_texts_break_nothing(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    run = run_of(cast.owner, cast)
    for word in ("ill", "done", "tasks", "id"):  # as ids, states and field names
        forget(make_memory(word, cast.owner, cast.workspace), cast.owner)
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert run.status == "done" and run.entries.filter(key="task:ill").exists()
    with pytest.raises(Exception, match="not running"):
        stop_run(run, by=cast.owner, now=timezone.now() + timedelta(hours=1))
