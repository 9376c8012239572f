"""Workers as real processes, killed during replies: of a list, of a team."""

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from chat.runs import transitions
from chat.runs.services import RunRequest, start_run
from chat.runs.worker import work
from tests.conftest import Cast
from tests.fakes.openai_server import HOLD, Answer, Call, Received, ScriptedOpenAI
from workspaces.access import get_workspace

pytestmark = pytest.mark.django_db(transaction=True)
LISTED = {"type": "array", "items": {"type": "string"}}
PLANS: dict[str, dict[str, Any]] = {
    "list": {
        "tasks": [
            {
                "id": "one",
                "title": "One",
                "steps": [
                    {"id": "find", "instructions": "Find.", "schema": LISTED},
                    {"id": "each", "instructions": "Slowly.", "over": "find"},
                ],
            }
        ]
    },
    "team": {"tasks": [{"id": name, "title": name, "description": "Slowly."} for name in ("a", "b", "c")]},
}


def slowly(request: Received) -> Answer:
    if request.messages[1]["content"].startswith("Find"):
        return Answer(calls=[Call("finish_step", {"result": ["a", "b", "c"]})])
    if not request.tool_results:
        return Answer(calls=[Call("memory_write", {"key": "noted", "value": 1})])
    finish = [Call("finish_step", {"result": "done"})] if "finish_step" in request.tool_names else []
    return Answer("done", HOLD, calls=finish)


def another_worker() -> int:
    """Fork a process with its own connections that works on runs until it is killed."""
    child = os.fork()
    if child:
        return child
    try:
        for connection in connections.all():
            connection.connection = None  # the parent's, which the child must not close
        work(seconds=60, at_once=3)
    finally:
        os._exit(0)


@pytest.mark.parametrize("what", PLANS)
def test_another_goes_on_behind_what_a_dead_worker_had_done(
    scripted_model: ScriptedOpenAI,
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., None],
    what: str,
) -> None:
    scripted_model.respond = slowly
    place = get_workspace(cast.owner, cast.workspace.public_id)
    mode = "multi-agent" if what == "team" else "plan"
    wanted = RunRequest("Do it", mode, plan=PLANS[what])
    run = start_run(place, wanted, by=cast.owner, now=timezone.now())
    at_once = 3  # pending replies

    def is_held() -> bool:
        return sum(bool(request.tool_results) for request in scripted_model.chat_requests) == at_once

    worker = another_worker()
    try:
        eventually(is_held)
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    before = len(scripted_model.chat_requests)
    assert run.steps.filter(status="running").count() == at_once
    scripted_model.release()
    monkeypatch.setattr(transitions, "STALE", timedelta(0))
    eventually(lambda: bool(work(seconds=20, at_once=1)))
    run.refresh_from_db()
    assert run.status == "done", run.error
    # Earlier results remain; only the interrupted replies are requested again.
    assert len(scripted_model.chat_requests) == before + at_once
    results = [json.loads(entry.json) for entry in run.entries.filter(kind="task_result")]
    assert results == (["done"] * 3 if what == "team" else [["done"] * 3])
