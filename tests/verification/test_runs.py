"""Runs survive the death of the database, a web server and a worker during a step, a list and a team."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2 as http

from tests.chat.runs import test_killed
from tests.fakes.openai_server import HOLD, Answer, Call, Received
from tests.memoryhub.local.processes import wait_until
from tests.stack import Stack, Web, signed_up
from tests.verification.conftest import Hub

STEP = {"tasks": [{"id": "one", "title": "One", "description": "Slowly."}]}
PLANS = {"step": STEP, **test_killed.PLANS}
AT_ONCE = {"step": 1, "list": 3, "team": 3}  # pending replies of the model in each


def saving_slowly(request: Received) -> Answer:
    """Save a memory, then hand in the result after a delay."""
    asked = request.messages[1]["content"]
    if asked.startswith("Find"):
        return Answer(calls=[Call("finish_step", {"result": ["a", "b", "c"]})])
    if not request.tool_results:
        me = re.search(r"You are (\w+)\.", request.messages[0]["content"])
        item = re.search(r"input:\S+", asked)
        name = me[1] if me else item[0] if item else "nobody else"
        return Answer(calls=[Call("x_save_memory", {"content": f"The locker of {name} is open on Mondays"})])
    finish = [Call("finish_step", {"result": "done"})] if "finish_step" in request.tool_names else []
    return Answer("done", HOLD, calls=finish)


def followed(person: http.Client, url: str, after: str = "") -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each event until the stream ends."""
    number = ""
    with suppress(http.TransportError), person.stream("GET", url, headers={"Last-Event-ID": after}) as stream:
        for line in stream.iter_lines():
            if line.startswith("id: "):
                number = line[4:]
            if line.startswith("event: "):
                yield number, line[7:]


def test_whichever_process_is_killed_runs_go_on_and_do_nothing_twice(
    hub: Hub, eventually: Callable[..., None]
) -> None:
    """Half a minute, for three deaths of real processes in three kinds of run at once."""
    stack, server = hub.stack, hub.model
    server.respond = saving_slowly

    def worker() -> Any:
        return stack.start("lane", sys.executable, "-m", "tests.chat.runs.work_loop", "8")

    def are_asked(times: int) -> Callable[[], bool]:
        """Return whether each delayed reply was requested this often."""
        return lambda: sum(bool(each.tool_results) for each in server.chat_requests) >= times * held

    web, held = hub.web(), sum(AT_ONCE.values())
    person = signed_up(web, "runner")
    place = f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"
    runs = {what: started(person, place, what) for what in PLANS}
    working = worker()
    eventually(are_asked(1), 30)
    before = [
        number for number, _name in seen_until_killed(stack, web, person, f"{place}/runs/{runs['team']}")
    ]
    stack.kill_database()
    eventually(are_asked(2), 30)  # only the interrupted replies are requested again
    stack.kill(working)
    working = worker()
    eventually(are_asked(3), 30)
    person.base_url = hub.web().url
    server.release()
    for run in runs.values():
        wait_until(lambda: now(person, place, run)["status"] == "done", "it is done", pause=0.3)  # noqa: B023
    results = {what: now(person, place, run)["result"] for what, run in runs.items()}
    assert results == {"step": "done", "list": ["done"] * 3, "team": "done"}
    saved = [memory["id"] for memory in person.get(f"{place}/memories").json()["items"]]
    listed = [each for run in runs.values() for each in now(person, place, run)["memory_ids"]]
    assert sorted(saved) == sorted(listed) and len(saved) == held == len(set(listed))
    assert (
        len(server.chat_requests) == 1 + held + 3 * held
    )  # the list, what was saved, and the interrupted replies
    rest = list(followed(person, f"{place}/runs/{runs['team']}/events", before[-1]))
    assert rest[-1][1] == "done" and not {number for number, _name in rest} & set(before)


def started(person: http.Client, place: str, what: str) -> str:
    names = ("ada", "ben", "cleo", "nobody else", *(f"input:each[{number}]" for number in range(3)))
    lockers = " ".join(f"The locker of {name} is open on Mondays." for name in names)
    body = {"objective": lockers, "plan": PLANS[what], "tools": ["x_save_memory"]}
    body["mode"] = "multi-agent" if what == "team" else "plan"
    answer = person.post(f"{place}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def now(person: http.Client, place: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = person.get(f"{place}/runs/{run}").json()
    return found


def seen_until_killed(stack: Stack, web: Web, person: http.Client, url: str) -> list[tuple[str, str]]:
    """Return the events of a run, during which the sending web process is killed."""
    seen = []
    for event in followed(person, f"{url}/events"):
        seen.append(event)
        if len(seen) == 6:
            stack.kill(web.process)
    return seen
