"""Measure a minute of mixed requests at a steady rate, and another in which every process is killed once.

    python -m tests.bench.bench_load [--rate 100] [--seconds 60] [--no-kills] [--web-processes 2]

Starts ``manage.py up`` in a temporary folder, everything real. People in workspaces of their own read and search their
panel, list, recall, save and edit memories, open chats and begin new ones (MIX); now and then one of them asks the
embedded model something (TURN_EVERY). Requests are sent on time whether earlier ones have been answered or not, and
their time counts from when they were due. In the steady minute every request must succeed; while web, worker,
database and model server are killed (SIGKILL), requests may fail, but every write that was acknowledged must be there
at the end.
"""

import argparse
import asyncio
import json
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.bench.thin_client import NOT_THERE, ThinClient
from tests.stack import Web, signed_up
from tests.verification.test_up import Installation

KILLED = ("web", "worker", "postgres", "model")
PEOPLE = 8
STORED = 50  # memories of each person at the beginning
CHATS = 20
# Seconds: the model writes about 100 tokens a second on one core, which the rest needs as well
TURN_EVERY = 6.0
MIX = {  # of a hundred requests
    "list memories": 12,
    "recall": 10,
    "panel": 8,
    "search in the panel": 5,
    "badge": 10,
    "list chats": 8,
    "open a chat": 8,
    "new-chat page": 3,
    "list workspaces": 8,
    "read one memory": 5,
    "save": 13,
    "edit": 7,
    "begin a chat": 3,
}
WHO = (
    "my sister",
    "the landlord",
    "our dentist",
    "Bruno from work",
    "the choir",
    "my neighbour",
    "the vet",
    "Chiara",
)
DOES = (
    "wants the invoice by the {n}th",
    "is allergic to nuts, says note {n}",
    "keeps the spare key in box {n}",
    "prefers trains to planes, {n} times out of ten",
    "moved the meeting to room {n}",
    "paid {n} euros for the violin lessons",
    "reads chapter {n} of the cookbook on Sundays",
    "planted {n} tomatoes behind the shed",
)


@dataclass
class Run:
    """The result of one minute of load."""

    sent: int = 0
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: Counter[str] = field(default_factory=Counter)
    took: float = 0.0
    refused: list[float] = field(default_factory=list)  # seconds until a 503 was returned


class Person:
    """A person with a session and a workspace, and the writes that were acknowledged to them."""

    def __init__(self, web: Web, name: str) -> None:
        session = signed_up(web, name)
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in session.cookies.jar)
        self.who = f"Cookie: {cookies}\r\nX-CSRFToken: {session.headers['X-CSRFToken']}\r\n"
        self.workspace = session.get("/chat/api/workspaces").json()["items"][0]["id"]
        self.memories: dict[str, str] = {}  # the last acknowledged text by id
        # Ids whose change was sent and never answered: either text may be stored
        self.unsure: set[str] = set()
        self.chats: dict[str, list[str]] = {}  # acknowledged questions by chat id


class Load:
    def __init__(self, client: ThinClient, people: list[Person]) -> None:
        self.client, self.people, self.run = client, people, Run()
        self.random, self.number = random.Random(7), 0
        self.sheds = False  # overload: this process is late as well, so time counts from sending

    def text(self) -> str:
        self.number += 1
        return f"{self.random.choice(WHO)} {self.random.choice(DOES).format(n=self.number)}".capitalize()

    async def act(self, kind: str, person: Person) -> int:
        """Send one request of this kind. Return its status."""
        api, page = f"/chat/api/workspaces/{person.workspace}", f"/workspaces/{person.workspace}"
        any_memory = self.random.choice(list(person.memories) or ["mem_none"])
        match kind:
            case "save" | "edit" | "begin a chat" | "turn":
                return await getattr(self, f"_{kind.split()[0]}")(person, api)
            case "recall":
                return await self._ask(person, "POST", f"{api}/recall", {"query": self.text()})
            case "list memories":
                path = f"{api}/memories"
            case "read one memory":
                path = f"{api}/memories/{any_memory}"
            case "panel":
                path = f"{page}/memories/?q="
            case "search in the panel":
                path = f"{page}/memories/?q={self.random.choice(WHO).split()[-1]}"
            case "badge":
                path = f"{page}/memories/count/"
            case "list chats":
                path = f"/chat/api/chats?workspace_id={person.workspace}"
            case "open a chat":
                path = f"/chats/{self.random.choice(list(person.chats))}/"
            case "new-chat page":
                path = f"{page}/"
            case _:
                path = "/chat/api/workspaces"
        return await self._ask(person, "GET", path)

    async def _ask(self, person: Person, method: str, path: str, body: Any = None) -> int:
        who = person.who + ("HX-Request: true\r\n" if "/memories/?" in path else "")
        return (await self.client.ask(who, method, path, body))[0]

    def once(self) -> str:
        """Return the header line that makes a write repeatable: empty here."""
        return ""

    async def _save(self, person: Person, api: str) -> int:
        text = self.text()
        status, answer = await self.client.ask(person.who, "POST", f"{api}/memories", {"content": text})
        if status == 201:
            person.memories[json.loads(answer)["id"]] = text
        return status

    async def _edit(self, person: Person, api: str) -> int:
        free = [memory for memory in list(person.memories)[-50:] if memory not in person.unsure]
        if not free:
            return await self._save(person, api)
        memory, text = self.random.choice(free), self.text()
        person.unsure.add(memory)
        who = person.who + self.once()
        status, _ = await self.client.ask(who, "PATCH", f"{api}/memories/{memory}", {"content": text})
        if status == 200:
            person.memories[memory] = text
            person.unsure.discard(memory)
        return status

    async def _begin(self, person: Person, api: str) -> int:
        body = {"workspace_id": person.workspace, "title": self.text(), "memory_enabled": True}
        status, answer = await self.client.ask(person.who, "POST", "/chat/api/chats", body)
        if status == 201:
            person.chats[json.loads(answer)["id"]] = []
        return status

    async def _turn(self, person: Person, api: str) -> int:
        """Ask a question in a chat of its own. It is acknowledged when its stream begins; the model answers later."""
        body: dict[str, Any] = {"workspace_id": person.workspace, "memory_enabled": True}
        status, answer = await self.client.ask(person.who, "POST", "/chat/api/chats", body)
        if status == 201:
            chat, question = json.loads(answer)["id"], self.text()
            body = {"content": question, "stream": True}
            path = f"/chat/api/{chat}/messages"
            status, answer = await self.client.ask(person.who, "POST", path, body, first_event=True)
            person.chats[chat] = [question] if status == 200 and b"event: message" in answer else []
        return status

    async def _timed(self, kind: str, due: float) -> None:
        sent = time.perf_counter()
        try:
            status = await self.act(kind, self.random.choice(self.people))
        except (*NOT_THERE, TimeoutError) as error:
            self.run.failures[f"{kind}: {type(error).__name__}"] += 1
            return
        if status == 503 and self.sheds:
            self.run.refused.append(time.perf_counter() - sent)
            return
        self.run.seconds[kind].append(time.perf_counter() - (sent if self.sheds else due))
        if status >= 400:
            self.run.failures[f"{kind}: {status}"] += 1

    async def go(self, rate: float, seconds: float) -> Run:
        self.run = Run()
        began, under_way, next_turn = time.perf_counter(), set[asyncio.Task[None]](), TURN_EVERY / 2
        for number in range(int(rate * seconds)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            kind = self.random.choices(list(MIX), list(MIX.values()))[0]
            if number / rate >= next_turn:
                kind, next_turn = "turn", next_turn + TURN_EVERY
            task = asyncio.create_task(self._timed(kind, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            self.run.sent += 1
        await asyncio.gather(*under_way)
        self.run.took = time.perf_counter() - began
        return self.run


async def lost(client: ThinClient, person: Person) -> list[str]:
    """Return the acknowledged writes that are missing or differ from what was acknowledged last."""
    memories = await _all(client, person, f"/chat/api/workspaces/{person.workspace}/memories?limit=100")
    found = {memory["id"]: memory["content"] for memory in memories}
    missing = [id for id, text in person.memories.items() if found.get(id) != text]
    missing = [id for id in missing if id not in found or id not in person.unsure]
    chats = await _all(client, person, f"/chat/api/chats?workspace_id={person.workspace}&limit=100")
    missing += set(person.chats) - {chat["id"] for chat in chats}
    for chat, questions in person.chats.items():
        if questions:
            messages = await _all(client, person, f"/chat/api/{chat}/messages?limit=100")
            missing += set(questions) - {message["content"] for message in messages}
    return missing


async def _all(client: ThinClient, person: Person, path: str) -> list[Any]:
    items: list[Any] = []
    cursor = ""
    while True:
        status, answer = await client.ask(person.who, "GET", path + cursor)
        assert status == 200, (path, status)
        page = json.loads(answer)
        items += page["items"]
        if not page["has_more"]:
            return items
        cursor = f"&cursor={page['next_cursor']}"


async def _kill_each(up: Installation, pause: float) -> None:
    for name in KILLED:
        await asyncio.sleep(pause)
        process = await asyncio.to_thread(up.service, name)
        if process is not None:
            process.send_signal(signal.SIGKILL)
            print(f"  {name} killed")


async def _overload(load: Load, options: argparse.Namespace) -> None:
    """Send the same load and then a multiple of it, and compare the answered requests."""
    load.sheds = True
    p95 = []
    for name, times in (("as before", 1), (f"{options.times:g} times as many", options.times)):
        run = await load.go(options.rate * times, options.seconds / 3)
        report(name, run)
        done = sorted(second for seconds in run.seconds.values() for second in seconds)
        p95.append(done[int(len(done) * 0.95)])
        if run.refused:
            refused = sorted(run.refused)
            print(
                f"  {len(refused):,} refused with 503: p50 {statistics.median(refused) * 1000:.0f} ms, ",
                end="",
            )
            print(f"p95 {refused[int(len(refused) * 0.95)] * 1000:.0f} ms")
    print(f"p95 of the answered: {p95[1] / p95[0]:.2f} times as long")


def cpu_seconds(up: Installation) -> dict[str, float]:
    """Return the CPU seconds that each kind of process has used so far."""
    used: dict[str, float] = {"load generator": time.process_time()}
    names = {"uvicorn": "web", "qcluster": "worker", "model_server": "model"}
    for process in up.processes():
        try:
            command = " ".join(process.cmdline())
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        name = next((name for mark, name in names.items() if mark in command), "")
        name = name or ("database" if process.name() == "postgres" else "supervisor")
        used[name] = used.get(name, 0.0) + times.user + times.system
    return used


def report(name: str, run: Run) -> None:
    done = sorted(second for seconds in run.seconds.values() for second in seconds)
    print(f"{name}: {run.sent:,} requests, {len(done) / run.took:.1f} answered a second")
    for kind, seconds in [*sorted(run.seconds.items()), ("all", done)]:
        p50, p95 = statistics.median(seconds) * 1000, sorted(seconds)[int(len(seconds) * 0.95)] * 1000
        print(f"  {kind:<20} {len(seconds):6,}   p50 {p50:7.0f} ms   p95 {p95:7.0f} ms")
    print(f"  failures: {dict(run.failures) or 'none'}")


async def measure(up: Installation, people: list[Person], options: argparse.Namespace) -> bool:
    client = ThinClient(up.port, connections=600 if options.times else 100)
    load = Load(client, people)
    for person in people:
        for kind, number in {"save": STORED, "begin a chat": CHATS}.items():
            for _ in range(number):
                assert await load.act(kind, person) == 201
    before = cpu_seconds(up)
    steady = await load.go(options.rate, options.seconds)
    report("steady", steady)
    for name, used in cpu_seconds(up).items():
        print(f"  cores used by {name:<15} {(used - before.get(name, 0.0)) / steady.took:.2f}")
    if not options.no_kills:
        killing = asyncio.create_task(_kill_each(up, options.seconds / (len(KILLED) + 1)))
        report("with kills", await load.go(options.rate, options.seconds))
        await killing
        await asyncio.sleep(10)  # the process killed last is back
    if options.times:
        await _overload(load, options)
    missing = [id for person in people for id in await lost(client, person)]
    written = sum(len(person.memories) + len(person.chats) for person in people)
    print(f"acknowledged writes that are not there: {len(missing)} of {written:,}")
    return not missing and not steady.failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=100, help="requests a second (100)")
    parser.add_argument("--seconds", type=float, default=60, help="of each of the two minutes (60)")
    parser.add_argument("--no-kills", action="store_true", help="the steady minute alone")
    parser.add_argument(
        "--times", type=float, help="then so many times the rate: what is refused, and how quickly"
    )
    parser.add_argument("--web-processes", type=int, help="instead of as many as it comes with")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-load-"))
    folder.chmod(0o755)
    up = Installation(folder)
    del up.environment["MEMORYHUB_WEB_PROCESSES"]  # the default number
    if options.web_processes:
        up.environment["MEMORYHUB_WEB_PROCESSES"] = str(options.web_processes)
    try:
        up.start()
        assert up.process is not None
        people = [Person(Web(up.port, up.process), f"person{number}") for number in range(PEOPLE)]
        held = asyncio.run(measure(up, people, options))
    finally:
        if up.process is not None:
            up.end(signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
