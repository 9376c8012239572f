"""Traces as a collector receives them. verification/test_logs_of_processes.py checks that they contain no user text."""

import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memoryhub.jobs import JobFailed, job
from memoryhub.monitoring import tracing
from memoryhub.monitoring.logs import JsonFormatter
from tests.factories import make_chat, make_user
from tests.fakes.openai_server import Answer, Call, Failure, ScriptedOpenAI
from tests.fakes.otlp import Receiver

Traced = Callable[..., Receiver]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def begin_anew() -> None:
    """Send pending spans and read the environment again."""
    if processor := getattr(tracing.tracer(os.getpid()), "span_processor", None):
        processor.shutdown()
    tracing.tracer.cache_clear()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Send traces to a fake receiver, configured by the environment; a second call replaces it."""
    receiver = Receiver()

    def begin(**environment: str) -> Receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        begin_anew()
        return receiver

    yield begin
    monkeypatch.undo()
    begin_anew()
    receiver.stop()


def work() -> None:
    with tracing.span("memoryhub.whole", {"memoryhub.items": 3}), tracing.span("memoryhub.part", alone=True):
        tracing.add_attributes({"memoryhub.ranking": "hybrid"})


def test_spans_are_sent_as_they_were_noted(traced: Traced) -> None:
    received = traced(OTEL_SERVICE_NAME="hub", OTEL_RESOURCE_ATTRIBUTES="deployment.environment=trial")
    work()
    begin_anew()  # flushes pending spans
    whole, part = received.named("memoryhub.whole")[0], received.named("memoryhub.part")[0]
    assert (part.trace, part.parent) == (whole.trace, whole.id)
    assert whole.attributes == {"memoryhub.items": 3, "memoryhub.ranking": "hybrid"}
    assert (whole.resource["service.name"], whole.resource["deployment.environment"]) == ("hub", "trial")


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_SAMPLER": "always_off"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
    ],
)
def test_nothing_is_sent_where_the_environment_says_so(traced: Traced, environment: dict[str, str]) -> None:
    received = traced(**environment)
    work()
    begin_anew()
    assert received.raw == []


def test_without_an_endpoint_there_is_neither_a_span_nor_a_change_of_what_runs() -> None:
    with tracing.span("memoryhub.whole") as span:
        assert not span.is_recording()
    work()
    assert (tracing.current_traceparent(), tracing.trace_id()) == ("", "")


def test_an_error_is_told_by_its_class_alone(traced: Traced) -> None:
    received = traced()

    @job
    def store() -> None:
        raise ValueError("My kumquat")

    with pytest.raises(JobFailed):
        store()
    begin_anew()
    span = received.named("memoryhub.job")[0]
    assert (span.failed, span.events) == (True, 0)
    assert span.attributes == {"memoryhub.job": "store", "error.type": "ValueError"}
    assert not any(b"kumquat" in body for body in received.raw)


@pytest.mark.django_db(transaction=True)
def test_a_turn_is_one_tree_also_where_its_model_fails_and_is_asked_again(
    traced: Traced, scripted_model: ScriptedOpenAI
) -> None:
    chat = make_chat(make_user("olive", memory_default=True))
    received = traced()
    twice = [Call("x_recall_memory", {"query": "tea"}), Call("rm -rf kumquat")]
    scripted_model.script(Failure(500, headers={"retry-after": "0"}), Answer(calls=twice), Answer("Green."))
    begin_turn(chat, content="Which tea?", by=chat.created_by, now=timezone.now())
    assert wait_until_idle(20)
    begin_anew()
    tree = received.tree_of("memoryhub.turn")
    names = sorted(span.name for span in tree)
    assert names == [
        *["memoryhub.model"] * 3,
        *["memoryhub.recall"] * 2,
        *["memoryhub.tool"] * 2,
        "memoryhub.turn",
    ]
    by_id = {span.id: span for span in tree}
    turn = next(span for span in tree if span.name == "memoryhub.turn")
    assert turn.attributes["memoryhub.status"] == "done" and turn.attributes["memoryhub.mode"] == "chat"
    models = [span for span in tree if span.name == "memoryhub.model"]
    assert [span.failed for span in models] == [True, False, False]
    assert all(span.attributes["gen_ai.request.model"] == scripted_model.model for span in models)
    assert [span.attributes.get("gen_ai.usage.output_tokens") for span in models] == [None, 3, 3]
    tools = {span.attributes["gen_ai.tool.name"]: span for span in tree if span.name == "memoryhub.tool"}
    assert set(tools) == {"x_recall_memory", "none of ours"}, "what a model makes up is text"
    recalls = [by_id[span.parent].name for span in tree if span.name == "memoryhub.recall"]
    assert sorted(recalls) == ["memoryhub.tool", "memoryhub.turn"]


@pytest.mark.django_db
@pytest.mark.parametrize(("proxies", "goes_on"), [(0, False), (1, True)])
def test_a_request_goes_on_with_the_trace_of_a_proxy_that_is_trusted_and_of_no_other(
    traced: Traced, settings: Settings, proxies: int, goes_on: bool
) -> None:
    settings.TRUSTED_PROXIES = proxies
    received = traced()
    Client().get("/accounts/login/?next=/kumquat/", headers={"traceparent": PARENT, "x-forwarded-for": "::1"})
    begin_anew()
    span = received.named("GET account_login")[0]
    assert (span.trace == PARENT.split("-")[1]) is goes_on
    assert (
        span.attributes["http.route"] == "account_login"
        and span.attributes["http.response.status_code"] == 200
    )
    assert not any(b"kumquat" in body for body in received.raw)


def test_a_line_of_the_log_names_its_trace(traced: Traced) -> None:
    traced()
    record = logging.LogRecord("memoryhub.x", logging.INFO, "", 0, "Well", (), None)
    with tracing.span("memoryhub.whole"):
        assert f'"trace_id": "{tracing.trace_id()}"' in JsonFormatter().format(record)
    assert "trace_id" not in JsonFormatter().format(record)


def test_what_sends_them_is_missing_is_said_at_the_start(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[Any]:
        return [each for each in run_checks() if each.id == "memoryhub.W001"]

    traced()
    assert told() == []
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    assert [each.msg for each in told()] == [tracing.NOT_INSTALLED]
    begin_anew()
    with tracing.span("memoryhub.whole") as span:
        assert not span.is_recording()
