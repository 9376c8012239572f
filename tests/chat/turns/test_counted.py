"""Every use of a model is counted for its user, workspace and purpose, and stops at a budget."""

import json
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.chats.services import forget_chat
from chat.models import Chat, Message, MessageStatus, RunStatus
from chat.modes import research
from chat.runs.services import RunRequest, resume_run, start_run
from chat.runs.worker import work
from chat.turns.compaction import compact
from chat.turns.services import begin_turn, retry_answer
from chat.turns.turn import wait_until_idle
from memories.models import Extraction
from memories.writing.extraction_jobs import extract
from memoryhub.llm.metering import Price
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.fakes.openai_server import HOLD, Answer, Call, Failure, ScriptedOpenAI
from workspaces.access import get_workspace
from workspaces.models import Budget, ModelUse, Purpose
from workspaces.spending.budgets import BudgetReached
from workspaces.spending.usage_records import Bill

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI, settings: Settings) -> Chat:
    settings.LLM_PRICE = Price(Decimal(1000), Decimal(2000))
    return make_chat(make_user("olive", memory_default=True))


def ask(chat: Chat, content: str = "When is the deadline?") -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(10)
    turn.answer.refresh_from_db()
    return turn.answer


def bill_of(answer: Message) -> Bill:
    answer.refresh_from_db()
    return Bill.from_json(answer.usage)


def test_a_turn_with_tools_is_all_its_calls_and_says_what_its_prompt_was_made_of(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    make_memory("The deadline of Apollo is March 15", chat.created_by, chat.workspace)
    scripted_model.script(Answer(calls=[Call("x_recall_memory", {"query": "deadline"})]), Answer("March 15."))
    bill = bill_of(ask(chat))
    assert (bill.calls, bill.tokens_in, bill.tokens_out, bill.estimated) == (2, 18, 6, 0)
    assert bill.cost == Decimal("0.03") and bill.has_cost
    assert bill.memory > 0 and bill.tools > 0 and bill.memory + bill.tools + bill.documents <= 18
    row = ModelUse.objects.get(purpose=Purpose.ANSWER)
    assert (row.workspace, row.user, row.model) == (chat.workspace, chat.created_by, scripted_model.model)
    assert (row.calls, row.tokens_in, row.cost) == (2, 18, bill.cost)
    chat_id = chat.pk
    forget_chat(chat, by=chat.created_by, now=timezone.now())
    assert not Message.objects.filter(chat=chat_id).exists() and ModelUse.objects.get(pk=row.pk).calls == 2


def test_an_answer_costs_two_statements_more(chat: Chat) -> None:
    with CaptureQueriesContext(connection) as asked:
        turn = begin_turn(chat, content="Hi", by=chat.created_by, now=timezone.now())
        assert wait_until_idle(10)
    budgets = [query for query in asked.captured_queries if "workspaces_budget" in query["sql"]]
    assert len(budgets) == 1, "before it; the other, behind it, is in a thread of its own"
    assert bill_of(turn.answer).calls == 1


def test_attempts_that_fail_stop_or_are_made_again_are_paid_too(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("half", cut=True), Answer("whole"))
    failed = ask(chat)
    assert failed.status == MessageStatus.FAILED and bill_of(failed).estimated == 1
    again = retry_answer(failed, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(10)
    bill = bill_of(again)
    assert (again.pk, bill.calls, bill.estimated) == (failed.pk, 2, 1)
    scripted_model.script(Failure(400, "No."))
    assert ask(chat, "And now?").usage is None, "what was refused took nothing"
    assert ModelUse.objects.get(purpose=Purpose.ANSWER).calls == 2


def test_what_is_noticed_and_summarised_is_counted_apart(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = lambda request: Answer(
        "[]" if "JSON" in json.dumps(request.body) else "Yes. " * 40
    )
    ask(chat, "I am allergic to peanuts and I live in Lyon.")
    for extraction in Extraction.objects.all():
        extract(extraction.pk, now=timezone.now())
    for number in range(60):
        make_message(chat, f"{number} " + "words " * 300, role="assistant" if number % 2 else "user")
    answer = make_message(chat, "The end.", role="assistant")
    compact(answer, chat.created_by, now=timezone.now())
    rows = dict(ModelUse.objects.values_list("purpose", "calls"))
    assert set(rows) == {Purpose.ANSWER, Purpose.MEMORY, Purpose.SUMMARY}
    before = len(scripted_model.chat_requests)
    Budget.objects.create(workspace=chat.workspace, tokens=1)
    assert "budget" in compact(answer, chat.created_by, now=timezone.now())
    Extraction.objects.update(status="pending", attempts=0)
    for extraction in Extraction.objects.all():
        extract(extraction.pk, now=timezone.now())
    assert {each.extractor for each in Extraction.objects.all()} == {"rules"}, "which cost nothing"
    assert len(scripted_model.chat_requests) == before


def test_two_turns_at_once_go_past_a_budget_by_those_two_and_no_third_begins(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    Budget.objects.create(user=chat.created_by, tokens=10)
    other = make_chat(chat.created_by, chat.workspace)
    scripted_model.hold()
    scripted_model.respond = lambda request: Answer("Yes", HOLD)
    by, now = chat.created_by, timezone.now()
    turns = [begin_turn(each, content="Hi", by=by, now=now) for each in (chat, other)]
    assert scripted_model.wait_for_requests(2)
    scripted_model.release()
    assert wait_until_idle(10)
    assert [bill_of(turn.answer).tokens for turn in turns] == [12, 12]
    for again in (
        lambda: begin_turn(chat, content="More", by=by, now=now),
        lambda: retry_answer(turns[0].answer, by=by, now=now),
    ):
        with pytest.raises(BudgetReached, match="24 of 10 tokens"):
            again()
    assert chat.messages.count() == 2, "nothing is kept of a turn that was refused"


def test_a_run_pauses_at_a_budget_and_goes_on_once_it_is_raised(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer("A word.")
    by, place = chat.created_by, get_workspace(chat.created_by, chat.workspace.public_id)
    tasks = [{"id": "a", "title": "A"}, {"id": "b", "title": "B", "depends_on": ["a"]}]
    budget = Budget.objects.create(workspace=place, tokens=10)
    wanted = RunRequest("Compare", plan={"tasks": tasks})
    run = start_run(place, wanted, by=by, now=timezone.now())
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert (run.status, run.error) == (RunStatus.STOPPED, "A budget for the month is used up.")
    assert ModelUse.objects.get(purpose=Purpose.RUN).calls == 1
    with pytest.raises(BudgetReached):
        start_run(place, wanted, by=by, now=timezone.now())
    budget.tokens = 1000
    budget.save()
    resume_run(run, by=by, now=timezone.now())
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert run.status == RunStatus.DONE and ModelUse.objects.get(purpose=Purpose.RUN).calls > 1


def test_a_run_asks_for_the_budget_before_each_call_and_not_once_a_step(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    by, place = chat.created_by, get_workspace(chat.created_by, chat.workspace.public_id)
    scripted_model.respond = lambda request: Answer(
        calls=[Call("memory_write", {"key": f"k{len(scripted_model.chat_requests)}", "value": "x"})]
    )
    budget = Budget.objects.create(workspace=place, tokens=30)
    limits = {"step_rounds": 20, "rounds": 100}
    run = start_run(place, RunRequest("Say", mode="loop", budget=limits), by=by, now=timezone.now())
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert (run.status, run.rounds, len(scripted_model.chat_requests)) == (RunStatus.STOPPED, 3, 3), (
        "12 a call"
    )
    budget.tokens = 50
    budget.save()
    resume_run(run, by=by, now=timezone.now())
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert (run.status, run.rounds) == (RunStatus.STOPPED, 5), "it goes on in the middle of the step"


def test_what_is_kept_of_a_persons_budget_says_neither_whose_nor_how_much(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget set after the turn began: all readers of the chat see its error."""
    by = chat.created_by

    def start(*args: object, **more: object) -> None:
        Budget.objects.create(user=by, tokens=0)
        start_run(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(research, "start_run", start)
    answer = begin_turn(chat, content="Compare", by=by, mode="research", now=timezone.now()).answer
    assert wait_until_idle(10)
    answer.refresh_from_db()
    assert answer.status == MessageStatus.FAILED and answer.error.startswith(
        "A budget for the month is used up."
    )
    said = answer.error + answer.steps.get().error
    assert "Your budget" not in said and not any(map(str.isdigit, said))
