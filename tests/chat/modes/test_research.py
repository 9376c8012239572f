"""Research in a chat: a run that the answer waits for, with its own steps, stopped with it, extracted from
afterwards.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from chat.live_answers import stop_answer
from chat.models import Message, Run
from chat.models.runs import STUCK
from chat.runs.services import get_run
from chat.runs.worker import work
from chat.turns.services import begin_turn, resume_from_chat, retry_answer
from memories.models import Extraction, Memory
from tests.chat.turns import test_auto_saved
from tests.chat.turns.test_auto_saved import mine
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.fakes.openai_server import HOLD, Answer, Call, Received, ScriptedOpenAI
from tests.signing_in import signed_in

PLAN = {"tasks": [{"id": "report", "title": "Write the report", "description": "Write the report."}]}
told = test_auto_saved.told  # the fixture
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker(scripted_model: ScriptedOpenAI) -> Iterator[None]:
    """Run a worker that takes ready steps, as the queue's workers do."""
    over = threading.Event()

    def turn() -> None:
        while not over.is_set():
            work(seconds=20, at_once=1)
            time.sleep(0.02)
        connections.close_all()

    thread = threading.Thread(target=turn)
    thread.start()
    yield
    over.set()
    thread.join()


def ask(cast: Cast, text: str, chat: Any = None, **more: Any) -> Message:
    chat = chat or make_chat(cast.owner, cast.workspace)
    return begin_turn(chat, content=text, by=cast.owner, mode="research", now=timezone.now(), **more).answer


def started(answer: Message, eventually: Callable[..., None], **more: Any) -> Run:
    """Wait for the plan, continue the run as its user, and return it once the report is written."""
    eventually(lambda: ended(answer), 20)
    assert (answer.status, answer.error_code, answer.content) == ("done", "plan_waits", ""), answer.error
    assert not answer.steps.exists() and not Extraction.objects.filter(message_id=answer.public_id).exists()
    run = get_run(answer.runs.get().user, answer.chat.workspace, answer.runs.get().public_id)
    resume_from_chat(run, by=run.user, now=timezone.now(), **more)
    eventually(lambda: ended(answer), 20)
    return run


def ended(answer: Message) -> bool:
    answer.refresh_from_db()
    return answer.status != "streaming"


def researching(memory_id: str) -> Callable[[Received], Answer]:
    def respond(request: Received) -> Answer:
        if "Split it into the fewest tasks" in str(request.messages[0]["content"]):
            return Answer(calls=[Call("finish_step", {"result": PLAN})])
        if not request.tool_results:
            noted = Call("memory_write", {"key": "noted", "value": "7"}, id="noted")
            return Answer(
                calls=[Call("x_recall_memory", {"query": "What does hosting cost?"}, id="found"), noted]
            )
        return Answer(
            f"Hosting costs 7 euros [1]. {'It is known. ' * 20}\n\nSources\n\n1. {memory_id}, a memory"
        )

    return respond


def test_a_question_is_researched_and_its_report_names_its_sources(
    scripted_model: ScriptedOpenAI,
    cast: Cast,
    worker: None,
    eventually: Callable[..., None],
    told: list[tuple[str, dict[str, Any]]],
) -> None:
    chat = make_chat(cast.owner, cast.workspace, memory_enabled=True)
    said = make_message(chat, "Hosting costs 7 euros a month")
    origin = {"source_chat_id": chat.public_id, "source_message_id": said.public_id}
    memory = make_memory("Hosting costs 7 euros a month", cast.owner, cast.workspace, **origin)
    scripted_model.respond = researching(memory.public_id)
    answer = ask(cast, "What does hosting cost?", chat)
    started(answer, eventually)
    assert answer.status == "done", answer.error
    opens = f"</workspaces/{cast.workspace.public_id}/?find={memory.public_id}>"
    assert (
        f"[{memory.public_id}]({opens})" in answer.content and f"euros [\\[1\\]]({opens})." in answer.content
    )
    assert memory.public_id in scripted_model.chat_requests[2].tool_results[0]
    step = answer.steps.get()
    assert (step.kind, step.outcome, step.text) == ("research", "planned", "✓ Write the report")
    assert Extraction.objects.get(source_type="auto_research").message_id == answer.public_id
    mine("auto_research", scripted_model, "What hosting costs is known")
    saved = Memory.objects.get(source_type="auto_research")
    data = {
        "workspace_id": cast.workspace.public_id,
        "chat_id": chat.public_id,
        "source_type": "auto_research",
    }
    channel = f"workspace:{cast.workspace.public_id}"
    assert told == [(channel, data | {"memory_ids": [saved.public_id], "count": 1})]
    asked = len(scripted_model.chat_requests)
    again = ask(cast, "And per year?", chat)
    eventually(lambda: ended(again), 20)
    planning = scripted_model.chat_requests[asked].last_user_text
    assert (
        "input:earlier.report" in planning and "input:earlier.noted" in planning and "7 euros" not in planning
    )


def test_a_stop_of_the_answer_stops_the_run(
    scripted_model: ScriptedOpenAI, cast: Cast, worker: None, eventually: Callable[..., None]
) -> None:
    scripted_model.respond = lambda request: Answer("One ", HOLD, "moment")
    answer = ask(cast, "What?", make_chat(cast.owner, cast.workspace, memory_enabled=True))
    eventually(lambda: Run.objects.filter(rounds=0).exists() and bool(scripted_model.chat_requests))
    stop_answer(Message.objects.select_related("chat").get(pk=answer.pk), now=timezone.now())
    eventually(lambda: ended(answer) and Run.objects.get().status != "running", 20)
    scripted_model.release()
    assert Run.objects.get().status == "stopped"


def test_a_run_that_no_worker_takes_up_is_given_up(
    scripted_model: ScriptedOpenAI, cast: Cast, eventually: Callable[..., None]
) -> None:
    answer = ask(cast, "What?", make_chat(cast.owner, cast.workspace, memory_enabled=True))
    eventually(lambda: Run.objects.exists())
    Run.objects.update(progressed_at=timezone.now() - STUCK * 2)
    eventually(lambda: ended(answer) and Run.objects.get().status == "stopped", 20)
    assert answer.status == "failed" and "no background worker" in answer.error


@pytest.mark.parametrize(
    ("chat", "why"),
    [
        ({"memory_enabled": False}, "memory, which is off"),
        ({"memory_enabled": True, "is_temporary": True}, "temporary chat"),
    ],
)
def test_where_nothing_may_be_searched_it_is_said(
    scripted_model: ScriptedOpenAI,
    cast: Cast,
    eventually: Callable[..., None],
    chat: dict[str, bool],
    why: str,
) -> None:
    answer = ask(cast, "What?", make_chat(cast.owner, cast.workspace, **chat))
    eventually(lambda: ended(answer))
    assert answer.status == "failed" and why in answer.error and not Run.objects.exists()


def test_the_run_of_a_private_chat_is_seen_by_nobody_else(
    scripted_model: ScriptedOpenAI, cast: Cast, worker: None, eventually: Callable[..., None]
) -> None:
    make_memory("My own hosting costs 900 euros a year", cast.editor, scope="user")
    chat = make_chat(cast.editor, cast.workspace, memory_enabled=True, is_private=True)
    scripted_model.respond = researching("mem_" + "x" * 24)
    answer = begin_turn(
        chat, content="What is my hosting?", by=cast.editor, mode="research", now=timezone.now()
    ).answer
    started(answer, eventually)
    run = Run.objects.get()
    assert run.is_private and "[mem_" not in answer.content.replace("[1]", "")
    assert [Run.objects.visible_to(user).count() for user in (cast.editor, cast.owner, cast.viewer)] == [
        1,
        0,
        0,
    ]
    assert "900 euros" in scripted_model.chat_requests[2].tool_results[0]


def test_the_plan_in_a_chat_is_changed_by_whom_the_research_is_and_started_there(
    scripted_model: ScriptedOpenAI, cast: Cast, worker: None, eventually: Callable[..., None]
) -> None:
    scripted_model.respond = researching("mem_" + "x" * 24)
    chat = make_chat(cast.editor, cast.workspace, memory_enabled=True)
    answer = begin_turn(chat, content="What?", by=cast.editor, mode="research", now=timezone.now()).answer
    eventually(lambda: ended(answer), 20)
    run = Run.objects.get()
    page = f"/chats/{chat.public_id}/messages/{answer.public_id}/"
    form = {"id": ["report"], "text": ["Find it."], "in_chat": "yes"}
    change, go = f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/plan/", f"{page}start/"
    for user, shows, code in ((cast.viewer, False, 403), (cast.stranger, False, 404), (cast.owner, True, 0)):
        html = signed_in(user).get(page).content.decode()
        assert ("<textarea" in html) is shows and ("It waits for" in html) is (user == cast.viewer)
        for url in (change, go) if code else ():
            assert signed_in(user).post(url, form).status_code == code
    editor = signed_in(cast.editor)
    shown = editor.post(change, form | {"do": "add"}).content.decode()
    assert "Find it." in shown and 'id="plan-added-1"' in shown and go in shown
    assert editor.post(change, {"do": "drop:0"} | form).status_code == 200  # no task would be left
    run.refresh_from_db()
    assert [task["description"] for task in run.plan["tasks"]] == ["Find it."]
    rows = {"id": ["added-1", "report"], "text": ["Note it.\r\n", "Find it."]}
    assert "data-stream" in editor.post(go, rows).content.decode()
    eventually(lambda: ended(answer), 20)
    assert answer.status == "done" and answer.content.startswith("Hosting costs")
    assert [(task.ref, task.depends_on) for task in run.tasks.all()] == [
        ("added-1", []),
        ("report", ["added-1"]),
    ]
    assert editor.post(go, rows).status_code == editor.post(change, rows).status_code == 409


def test_a_run_goes_on_without_the_process_that_waited_for_it(
    scripted_model: ScriptedOpenAI, cast: Cast, worker: None, eventually: Callable[..., None]
) -> None:
    """After a crash the answer is marked as interrupted; a retry uses what the workers have done since."""
    scripted_model.respond = researching("mem_" + "x" * 24)
    answer = ask(cast, "What?", make_chat(cast.owner, cast.workspace, memory_enabled=True))
    run = started(answer, eventually)
    asked = len(scripted_model.chat_requests)
    lost = {"status": "failed", "error_code": "interrupted", "content": ""}
    for status, requests in (("done", 0), ("stopped", 0), ("waiting", 1)):
        Message.objects.filter(pk=answer.pk).update(**lost)
        Run.objects.filter(pk=run.pk).update(status=status)
        answer.refresh_from_db()
        retry_answer(answer, by=cast.owner, now=timezone.now())
        eventually(lambda: ended(answer), 20)
        assert len(scripted_model.chat_requests) == asked + requests
        assert answer.status == "done" and bool(answer.content) is (status != "waiting")
    assert [each.status for each in Run.objects.order_by("pk")] == ["stopped", "waiting"]


def test_a_plan_that_something_was_asked_after_is_started_with_its_run_alone(
    scripted_model: ScriptedOpenAI, cast: Cast, worker: None, eventually: Callable[..., None]
) -> None:
    scripted_model.respond = researching("mem_" + "x" * 24)
    chat = make_chat(cast.owner, cast.workspace, memory_enabled=True)
    answer = ask(cast, "What?", chat)
    eventually(lambda: ended(answer), 20)
    make_message(chat, "Never mind")
    page = signed_in(cast.owner).get(f"/chats/{chat.public_id}/messages/{answer.public_id}/").content.decode()
    assert "not started here" in page and "<textarea" not in page
    run = get_run(cast.owner, cast.workspace, Run.objects.get().public_id)
    resume_from_chat(run, by=cast.owner, now=timezone.now())
    eventually(lambda: Run.objects.get().status == "done", 20)
    assert ended(answer) and answer.content == ""
