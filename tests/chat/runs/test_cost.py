"""The overhead of a run: queries of a step, and of a list of a long memory."""

import time
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import Run, RunEntry
from chat.runs import worker
from chat.runs.run_entries import MemoryKind, RunEntries, StoredRunEntries
from chat.runs.run_memory_tools import ToList, list_entries
from chat.runs.services import RunRequest, start_run
from chat.runs.transitions import claim_next_step
from chat.runs.worker import work
from memoryhub.llm.metering import Price
from tests.bench.bench_runs import a_plan
from tests.conftest import Cast
from tests.fakes import openai_server
from tests.fakes.openai_server import Answer, Call, Failure, ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.access import get_workspace
from workspaces.models import ModelUse

pytestmark = pytest.mark.django_db


def begun(cast: Cast, plan: dict[str, Any]) -> Run:
    place = get_workspace(cast.owner, cast.workspace.public_id)
    return start_run(place, RunRequest("Say words", plan=plan), by=cast.owner, now=timezone.now())


def test_of_a_thousand_entries_the_newest_are_listed_without_reading_the_others(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    run, plain = begun(cast, a_plan(1)), RunEntries()
    for number in range(1_000):
        source = "odd" if number % 2 else None
        plain.set(
            f"shared:{number}", MemoryKind.SHARED, "é" * 9, source=source, title="T", description="d" * 300
        )
    RunEntry.objects.bulk_create(
        RunEntry(run=run, key=e.key, kind=e.kind, json=e.json, size=e.value_bytes, source=e.source, title=e.title,
                 description=e.description, created_at=e.created_at)
        for e in plain.snapshot()
    )  # fmt: skip
    stored = StoredRunEntries(run_pk=run.pk)
    for filters in (
        {},
        {"key_prefix": "shared:9"},
        {"sources": ["odd"]},
        {"kind": "input"},
        {"kind": ["shared"]},
    ):
        asked = ToList.model_validate(filters)
        with CaptureQueriesContext(connection) as queries:
            listed = list_entries(stored, asked)
        assert listed == list_entries(plain, asked) and listed["returned"] <= 200
        assert len(queries) == 1 + (listed["total"] > 200)  # the others are counted
        assert '"json"' not in queries[0]["sql"]
    with CaptureQueriesContext(connection) as queries:
        stored.newest(200, kind=None, key_prefix="", sources=None)
    plans = []
    with connection.cursor() as cursor:
        for command in ("SELECT 1", "ANALYZE chat_runentry"):  # first without statistics of the table
            cursor.execute(command)
            cursor.execute("EXPLAIN " + queries[0]["sql"])
            plans.append("\n".join(line for (line,) in cursor.fetchall()))
    assert all("run_entries_newest" in plan and "Sort" not in plan for plan in plans), plans


def test_a_step_takes_few_queries_in_one_transaction_and_leads_to_the_next(
    scripted_model: ScriptedOpenAI, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    """Queries from taking a step to queueing the next. The same worker takes the next step; another is notified only if
    there are more. Two queries are the budget and the ledger, another the default model.
    """
    scripted_model.respond = lambda request: Answer("A word.")
    run = begun(cast, a_plan(4))
    step = claim_next_step(now=timezone.now())
    for _ in range(2):
        assert step is not None
        with CaptureQueriesContext(connection) as queries, django_capture_on_commit_callbacks() as tickets:
            step = worker.do(step, ends=time.monotonic() + 20)
        sent = [query["sql"] for query in queries]
        assert len(sent) - 3 <= 12 and sum("SAVEPOINT" in each for each in sent) == 2 and not tickets, sent
    run.refresh_from_db()
    assert step is not None and (step.ref, step.status, step.lease) == ("s2", "running", 1)
    assert run.states["steps"] == {"s0": "done", "s1": "done", "s2": "running"} and run.rounds == 2
    assert [event.kind for event in run.events.all()] == ["reply", "step"] * 2
    begun(cast, {"tasks": [{"id": "a"}, *({"id": name, "depends_on": ["a"]} for name in "bc")]})
    assert worker.do(step, ends=time.monotonic() + 20) is None  # another run waits, whose turn it is
    last, first = claim_next_step(now=timezone.now()), claim_next_step(now=timezone.now())
    assert last and last.ref == "s3" and first and first.ref == "a"  # the run that was served longest ago
    with django_capture_on_commit_callbacks() as tickets:
        step = worker.do(first, ends=time.monotonic() + 20)
    assert step is not None and step.ref == "b" and len(tickets) == 1  # for the worker that takes the third


def test_a_step_in_hand_is_laid_down_when_the_time_of_its_job_is_up(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    scripted_model.respond = lambda request: Answer("A word.", delay=0.3)
    run = begun(cast, a_plan(3))
    assert work(seconds=0.2, at_once=1) == 2  # the second one was already finished
    assert [(step.ref, step.status) for step in run.steps.all()] == [("s0", "done"), ("s1", "ready")]


def test_a_run_says_what_it_will_cost_and_what_it_did_in_tokens_and_money(
    scripted_model: ScriptedOpenAI, cast: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are the provider's figures, at the price of the model; without a price no cost is shown."""
    monkeypatch.setattr(openai_server, "USAGE", {"prompt_tokens": 1_000, "completion_tokens": 200})
    scripted_model.respond = lambda request: Answer("A word.")
    free = begun(cast, a_plan(2))
    assert free.expected_tokens == 12_000 and free.expected_cost is None
    work(seconds=20, at_once=1)
    free.refresh_from_db()
    assert (free.status, free.tokens_in, free.tokens_out, free.cost) == ("done", 2_000, 400, None)
    settings.LLM_PRICE = Price(Decimal(3), Decimal(15))
    run = begun(cast, a_plan(4))
    assert (run.expected_tokens, run.expected_cost) == (4_800, Decimal("0.024"))  # as the one before
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert (run.tokens_in, run.tokens_out, run.cost) == (4_000, 800, Decimal("0.024"))
    page = signed_in(cast.viewer).get(f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/")
    assert "$0.024" in page.content.decode() and "about $0.024 expected" not in page.content.decode()
    rest = signed_in(cast.viewer).get(f"/chat/api/workspaces/{cast.workspace.public_id}/runs/{run.public_id}")
    assert (rest.json()["cost"], rest.json()["expected_cost"]) == ("0.02400000", "0.02400000")
    runs = signed_in(cast.owner).get(f"/workspaces/{cast.workspace.public_id}/runs/").content.decode()
    assert "about 3,600 tokens, $0.018." in runs
    uses = ModelUse.objects.filter(purpose="run")  # the month's ledger has the same, once
    assert sum(use.tokens_in for use in uses) == 6_000 and sum(use.cost for use in uses) == Decimal("0.024")


def test_what_a_step_took_before_it_failed_is_counted_once(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    call = Call("memory_write", {"key": "k", "value": 1})
    scripted_model.script(Answer(calls=[call]), Answer(calls=[call]), Failure(400, "no"))
    run = begun(cast, a_plan(1))
    work(seconds=20, at_once=1)
    run.refresh_from_db()
    assert (run.status, run.rounds, run.tokens_in) == ("failed", 2, 2 * openai_server.USAGE["prompt_tokens"])
    assert run.tokens_in == sum(use.tokens_in for use in ModelUse.objects.filter(purpose="run"))
