"""User text never appears in logs or traces, by any route and in any failure."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2 as http

from tests.fakes.openai_server import Answer, Call, Failure, ScriptedOpenAI
from tests.memoryhub.local.processes import wait_until
from tests.stack import Stack, Web, signed_up
from tests.verification.conftest import TOKEN, Hub

WORD = "kumquat"


def page(person: http.Client, path: str, **form: str) -> http.Response:
    answer = person.post(path, data=form, headers={"HX-Request": "true"})
    assert answer.status_code < 500, answer.text
    return answer


def write_everywhere(person: http.Client, server: ScriptedOpenAI) -> None:
    """Send the same word by every route, also into refusals and failures."""
    said = f"My {WORD} deadline is March"
    api = "/chat/api"
    ws = person.get(f"{api}/workspaces").json()["items"][0]["id"]
    memories = f"{api}/workspaces/{ws}/memories"
    made = person.post(memories, json={"content": f"{said} 1", "tags": [WORD]}).json()["id"]
    person.patch(f"{memories}/{made}", json={"content": f"{said} 2"})
    person.post(memories, json={"content": f"api_key = sk-{WORD}{'a1B2' * 8}"})  # a secret
    person.post(
        memories, json={"content": said * 500, WORD: said, "importance": said}
    )  # too long, an unknown field, an invalid number
    person.post(
        memories,
        content=b'{"content": "' + said.encode() + b"\xff",
        headers={"content-type": "application/json"},
    )
    person.get(memories, params={"cursor": WORD, "limit": WORD})
    person.post(f"{api}/workspaces/{ws}/recall", json={"query": said})
    person.post(f"{api}/workspaces/{ws}/search", json={"query": said})
    person.post(f"{api}/workspaces", json={"name": said, "description": said})
    page(person, f"/workspaces/{ws}/memories/add/", **{"new-content": f"{said} 3"})
    page(person, f"/workspaces/{ws}/memories/{made}/edit/", **{f"{made}-content": f"{said} 4"})
    person.get(f"/workspaces/{ws}/memories/", params={"q": said})
    page(person, "/workspaces/", name=WORD * 99, description=said)
    page(person, f"/workspaces/{ws}/members/", username=WORD, role="viewer")
    person.post("/accounts/login/", data={"login": said, "password": said})
    chat = person.post(f"{api}/chats", json={"title": said, "memory_enabled": True}).json()["id"]
    found = [{"text": f"{said} 5", "kind": "fact", "importance": 0.6}]
    looks = Answer(calls=[Call("x_recall_memory", {"query": said}), Call(WORD)])
    server.script(looks, Answer(f"Noted: {said}"), Answer(json.dumps(found)))
    person.post(f"{api}/{chat}/messages", json={"content": f"{said} 5", "stream": False})
    noticed = f"{api}/{chat}/memories"
    wait_until(lambda: person.get(noticed).json()["memories"], "the worker notices it", pause=0.3)
    # Servers that quote the prompt in their errors, as some do.
    for status, times in ((400, 1), (500, 3)):
        server.script(*[Failure(status, f"Failed to parse messages: {said}")] * times)
        chat = person.post(f"{api}/chats", json={"title": said}).json()["id"]
        person.post(f"{api}/{chat}/messages", json={"content": said, "stream": False})
    page(person, f"/workspaces/{ws}/chats/", content=said)
    person.delete(f"{memories}/{made}")


def lines(stack: Stack) -> Iterator[tuple[str, str]]:
    for path in sorted(stack.folder.glob("*.log")) + sorted((stack.folder / "logs").glob("*.log")):
        for line in path.read_text(errors="replace").splitlines():
            yield path.name, line


def counted(web: Web) -> Counter[str]:
    """Return the counters of both web processes and of the worker, as any process reports them."""
    told = http.get(f"{web.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert WORD not in told
    return Counter({name: int(float(number)) for name, number in re.findall(r"^(\S+) ([\d.]+)$", told, re.M)})


def test_no_log_has_a_word_of_what_people_said(hub: Hub) -> None:
    stack, collector = hub.stack, hub.collector
    web, other = hub.webs(2)
    stack.start("noticing", sys.executable, "manage.py", "qcluster")
    before, person = counted(other), signed_up(web, "writer")
    write_everywhere(person, hub.model)
    marked = [(name, line) for name, line in lines(stack) if WORD in line.lower()]
    assert marked == []
    for name, line in lines(stack):
        if name.startswith("web") and line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            assert {"at", "level", "logger", "message", "service"} <= set(told), line
    requests = [json.loads(line) for _, line in lines(stack) if '"memoryhub.requests"' in line]
    assert {"POST", "GET", "PATCH", "DELETE"} <= {each["method"] for each in requests}
    assert all(each["request_id"] for each in requests)
    by_worker = [line for name, line in lines(stack) if name == "noticing.log"]
    assert any('"memories.writing.extraction_jobs"' in line for line in by_worker)
    gained = counted(other)
    gained.subtract(before)
    assert gained['memoryhub_memories_saved_total{source="auto_chat"}'] == 1, "by the worker"
    assert gained['memoryhub_turns_total{status="failed"}'] == 2
    assert gained['memoryhub_memories_refused_total{kind="secret"}'] == 1
    # A turn is one tree of spans, from the request to the worker's extraction.
    wait_until(lambda: collector.named("memoryhub.extraction"), "the worker sends its part")
    wait_until(lambda: len(collector.named("memoryhub.turn")) >= 4, "the web process sends its own")
    tree = collector.tree_of("memoryhub.extraction")
    parts = {"turn", "recall", "model", "tool", "job", "extraction"}
    assert {f"memoryhub.{part}" for part in parts} <= {span.name for span in tree}
    assert len({span.resource["process.pid"] for span in tree}) == 2, "of the web process and of the worker"
    assert collector.raw and not any(WORD.encode() in body.lower() for body in collector.raw)
    ready = http.get(f"{other.url}/readyz").json()
    assert ready["status"] == "ok", ready
