"""Behaviour across real processes: streams opened elsewhere, killed workers and web servers."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import psycopg

from chat.models import ABANDONED_AFTER
from memoryhub.local.postgres import connection_settings
from tests.fakes.openai_server import HOLD, Answer
from tests.memoryhub.local.processes import wait_until
from tests.stack import signed_up
from tests.verification.conftest import Hub

# Simulates a missed heartbeat: a process without one counts as dead; a living one sends the next.
LONG_AGO = "UPDATE chat_message SET beat_at = beat_at - %s WHERE status = 'streaming'"
SAID = "My project deadline is March 15 and I am vegetarian."


def stream_events(response: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])


def test_a_stream_is_opened_on_another_process_than_the_one_that_answers(hub: Hub) -> None:
    first, second = hub.webs(2)
    person = signed_up(first, "two_processes")
    chat = person.post("/chat/api/chats", json={}).json()["id"]
    hub.model.script(Answer("One ", HOLD, "two"))
    with person.stream(
        "POST", f"/chat/api/{chat}/messages", json={"content": "Count", "stream": True}
    ) as sent:
        events = stream_events(sent)
        name, data = next(events)
        assert name == "message"
        answer = data["answer"]["id"]
        assert next(events) == ("token", {"text": "One "})
    # The first connection is closed, and the answer continues. The same session reads it from the other process.
    elsewhere = f"{second.url}/chats/{chat}/messages/{answer}/stream/"
    with person.stream("GET", elsewhere) as other:
        assert other.headers["content-type"].startswith("text/event-stream")
        events = stream_events(other)
        assert next(events)[1]["text"] == "One "
        hub.model.release()
        rest = list(events)
    assert "".join(data["text"] for name, data in rest if name == "token") == "two"
    assert rest[-1][0] == "done"
    stored = person.get(f"/chat/api/{chat}/messages").json()["items"]
    assert [(m["role"], m["content"], m["status"]) for m in stored][-1] == ("assistant", "One two", "done")


def test_a_killed_web_process_leaves_the_text_so_far_and_a_retry(
    hub: Hub, eventually: Callable[..., None]
) -> None:
    first, second = hub.webs(2)
    person = signed_up(first, "killed_web")
    chat = person.post("/chat/api/chats", json={}).json()["id"]

    def stored_answer() -> str:
        return person.get(f"{second.url}/chat/api/{chat}/messages").json()["items"][-1]["content"]

    hub.model.script(Answer("Half an answer", HOLD, " and the rest"))
    with person.stream("POST", f"/chat/api/{chat}/messages", json={"content": "Go", "stream": True}) as sent:
        answer = next(stream_events(sent))[1]["answer"]["id"]
        eventually(lambda: stored_answer() == "Half an answer")
        hub.stack.kill(first.process)
    with psycopg.connect(**connection_settings(hub.stack.folder)) as connection:  # type: ignore[arg-type]
        connection.execute(LONG_AGO, [ABANDONED_AFTER])
    elsewhere = f"{second.url}/chats/{chat}/messages/{answer}/stream/"
    with person.stream("GET", elsewhere) as other:
        events = list(stream_events(other))
    assert "".join(data["text"] for name, data in events if name == "token") == "Half an answer"
    assert (events[-1][0], events[-1][1]["code"]) == ("error", "interrupted")
    hub.model.script(Answer("Whole"))
    retried = person.post(f"{second.url}/chat/api/{chat}/messages/{answer}/retry", json={})
    assert retried.status_code < 300, retried.text
    with person.stream("GET", elsewhere) as other:
        events = list(stream_events(other))
    assert "".join(data["text"] for name, data in events if name == "token") == "Whole"


def test_a_worker_killed_in_the_middle_of_an_extraction_stores_everything_once(
    hub: Hub, eventually: Callable[..., None]
) -> None:
    person = signed_up(hub.web(), "killed_worker")
    chat = person.post("/chat/api/chats", json={"memory_enabled": True}).json()["id"]
    found = [
        {"text": text, "kind": "fact", "importance": 0.6}
        for text in ("Deadline is March 15", "Is vegetarian")
    ]
    reply = json.dumps(found)
    hub.model.script(Answer("Noted."), Answer(HOLD, reply))
    assert (
        person.post(f"/chat/api/{chat}/messages", json={"content": SAID, "stream": False}).status_code == 201
    )
    cluster = hub.stack.worker()

    def at_work() -> list[psutil.Process]:
        family = psutil.Process(cluster.pid).children(recursive=True)
        return [process for process in family if " processing " in " ".join(process.cmdline())]

    eventually(lambda: len(hub.model.chat_requests) == 2 and bool(at_work()), 30)
    # The worker waits for the model, in the middle of the job.
    hub.model.script(Answer(reply), Answer(reply))
    os.kill(at_work()[0].pid, signal.SIGKILL)
    hub.model.release()

    def stored() -> list[str]:
        return sorted(
            memory["content"] for memory in person.get(f"/chat/api/{chat}/memories").json()["memories"]
        )

    wait_until(stored, "another one stores it", pause=0.3)
    assert stored() == ["Deadline is March 15", "Is vegetarian"]
    wait_until(lambda: hub.stack.jobs_in_queue() == 0, "the queue is empty")  # none is left to be repeated
    assert stored() == ["Deadline is March 15", "Is vegetarian"]
