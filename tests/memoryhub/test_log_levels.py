"""Levels that are changed while it runs, in this process; in others: verification/test_logs_of_processes.py."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_q.signals import pre_execute

from memoryhub import events
from memoryhub.monitoring import log_levels

RECALL, WRITING = "memories.recalling", "memories.writing"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in (RECALL, WRITING)}
    yield
    log_levels.apply({}, timezone.now())
    pre_execute.disconnect(dispatch_uid=log_levels.CHANNEL)
    assert {name: logging.getLogger(name).level for name in before} == before


def is_on(name: str = RECALL) -> bool:
    return logging.getLogger(f"{name}.recall").isEnabledFor(logging.DEBUG)


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("log_level", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [
        ("django.db.backends",),  # quotes statements with their values
        ("openai",),  # quotes what is sent to a model
        ("httpx2",), ("mcp",), ("uvicorn.access",), ("root",), ("memoryhubs",), ("psycopg",),
        ("memories.recaling",), ("memories..recalling",), (RECALL, "LOUD"), (RECALL, "5"),
        (RECALL, "DEBUG", "--minutes", "0"), (RECALL, "DEBUG", "--minutes", "-1"), (RECALL, "--minutes", "1441"),
    ],
)  # fmt: skip
def test_what_keeps_texts_out_of_logs_is_not_lowered_and_what_is_not_there_is_said(
    arguments: tuple[str, ...],
) -> None:
    before = dict(cache.get(log_levels.KEY, {}))
    with pytest.raises(CommandError):
        call_command("log_level", *arguments)
    assert cache.get(log_levels.KEY, {}) == before == {}


@pytest.mark.django_db
def test_a_level_is_set_listed_and_back_when_its_time_is_over_or_somebody_says_so() -> None:
    assert told() == "Everything is logged as the settings say.\n"
    assert told(RECALL, "debug", "--minutes", "2").startswith(f"{RECALL}: DEBUG until ")
    told(WRITING, "ERROR")
    now = timezone.now()
    log_levels.apply(log_levels.wanted(now), now)
    assert is_on() and logging.getLogger(WRITING).level == logging.ERROR
    later = now + timedelta(minutes=3)
    log_levels.apply(log_levels.wanted(later), later)
    assert not is_on() and logging.getLogger(WRITING).level == logging.ERROR
    assert told("--back") == "Everything is logged as the settings say.\n"
    log_levels.apply(log_levels.wanted(later), later)


@pytest.mark.django_db
def test_the_process_sets_it_back_by_its_own_clock(eventually: Callable[..., None]) -> None:
    now = timezone.now()
    log_levels.apply({RECALL: ("DEBUG", now + timedelta(seconds=0.2))}, now)
    assert is_on()
    eventually(lambda: not is_on(), 10)


@pytest.mark.django_db(transaction=True)
def test_a_web_process_hears_of_it_and_reads_it_where_it_was_said_before_it_listened(
    eventually: Callable[..., None],
) -> None:
    events.close()
    told(RECALL)
    log_levels.follow()
    try:
        eventually(is_on, 10)
        told("--back")
        eventually(lambda: not is_on(), 10)
        told(WRITING)
        eventually(lambda: is_on(WRITING), 10)
    finally:
        events.close()


def test_the_application_alone_starts_nothing_that_listens() -> None:
    assert import_module("memoryhub.asgi").django_application
    assert log_levels.CHANNEL not in events._listener.callbacks


@pytest.mark.django_db
def test_the_queues_processes_look_before_a_job_and_not_before_each(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[..., object]
) -> None:
    monkeypatch.setattr(log_levels, "_refreshed_at", 0.0)
    log_levels.follow_before_jobs()
    told(RECALL)
    pre_execute.send(sender="django_q", func=None, task={})
    assert is_on()
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        pre_execute.send(sender="django_q", func=None, task={})


@pytest.mark.django_db(transaction=True)
def test_two_changes_at_once_both_count() -> None:
    names = [RECALL, WRITING, "memories.judging", "memories.forgetting"]
    together = threading.Barrier(len(names))

    def change(name: str) -> None:
        together.wait(20)
        try:
            log_levels.set_level(name, "INFO", minutes=5, now=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(len(names)) as people:
        list(people.map(change, names))
    assert set(log_levels.wanted(timezone.now())) == set(names)
    cache.clear()
