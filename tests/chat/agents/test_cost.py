"""What the machinery of a run costs: queries of a step, and of a list of a long memory."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.agents import doing
from chat.agents.lanes import take_next
from chat.agents.memory_tools import ToList, list_entries
from chat.agents.run_memory import AgentMemory, MemoryKind
from chat.agents.runs import Wanted, start_run
from chat.agents.stored_run import StoredMemory
from chat.models import Run, RunEntry
from tests.bench.bench_runs import a_plan
from tests.conftest import Cast
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.access import get_workspace

pytestmark = pytest.mark.django_db


def begun(cast: Cast, plan: dict[str, Any]) -> Run:
    place = get_workspace(cast.owner, cast.workspace.public_id)
    return start_run(place, Wanted("Say words", plan=plan), by=cast.owner, now=timezone.now())


def test_of_a_thousand_entries_the_newest_are_listed_without_reading_the_others(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    run, plain = begun(cast, a_plan(1)), AgentMemory()
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
    stored = StoredMemory(run_pk=run.pk)
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
        assert len(queries) == 1 + listed["truncated"]  # the others are counted
        assert '"json"' not in queries[0]["sql"]
    newest = RunEntry.objects.filter(run=run).order_by("-created_at", "-pk").values_list("key")[:200]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chat_runentry")
    plan = newest.explain()
    assert "run_entries_newest" in plan and "Sort" not in plan


def test_a_step_takes_few_queries_and_one_ready_alone_no_ticket(
    scripted_model: ScriptedOpenAI, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    """From being taken up to the next one being put up: what a step costs over the model's reply. Whoever did it takes
    the next one, and only where there are more than that another worker is told.
    """
    scripted_model.respond = lambda request: Answer("A word.")
    run = begun(cast, a_plan(4))
    for _ in range(2):
        step = take_next(now=timezone.now())
        assert step is not None
        with CaptureQueriesContext(connection) as queries, django_capture_on_commit_callbacks() as tickets:
            doing.do(step, ends=time.monotonic() + 20)
        sent = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
        assert len(sent) <= 16 and not tickets, sent
    run.refresh_from_db()
    assert run.states["steps"] == {"s0": "done", "s1": "done", "s2": "running"} and run.rounds == 2
    assert [event.kind for event in run.events.all()] == ["reply", "step"] * 2
    Run.objects.update(status="stopped")
    begun(cast, {"tasks": [{"id": "a"}, *({"id": name, "depends_on": ["a"]} for name in "bc")]})
    first = take_next(now=timezone.now())
    assert first is not None
    with django_capture_on_commit_callbacks() as tickets:
        doing.do(first, ends=time.monotonic() + 20)
    assert len(tickets) == 1
