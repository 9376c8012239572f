"""A minute of mixed requests at a steady rate, then another in which every process is killed once.

    python -m tests.bench.bench_load [--rate 100] [--seconds 60]

Starts ``manage.py up`` in a temporary folder, everything real. Requests are sent on time whether earlier ones have
been answered or not. In the quiet minute every request must succeed; while web, worker, database and model server are
killed (SIGKILL), requests may fail, but every write that was acknowledged must be there at the end. Prints both.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as http

from tests.memoryhub.local.test_up import Installation

KILLED = ("web", "worker", "postgres", "model")
NAMES = ["Ada", "Bruno", "Chiara", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas"]
THINGS = [
    "invoice",
    "server",
    "garden",
    "violin",
    "passport",
    "printer",
    "kitchen",
    "kayak",
    "recipe",
    "tent",
]
STORED = 200  # memories that are there from the beginning


@dataclass
class Run:
    """What one minute came to. ``written``: by id of a memory or chat what was acknowledged last."""

    sent: int = 0
    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    written: dict[str, str] = field(default_factory=dict)


class Load:
    def __init__(self, client: http.AsyncClient, workspace: str) -> None:
        self.client, self.workspace, self.run = client, workspace, Run()
        self.random, self.number = random.Random(7), 0
        self.memories: list[str] = []
        self.editing: set[str] = set()
        self.unsure: set[str] = set()  # changes that were sent and never answered: either text may stand
        self.chats: list[str] = []
        in_ws = f"/chat/api/workspaces/{workspace}"
        self.mix: list[tuple[int, Callable[[], Awaitable[http.Response]]]] = [
            (25, lambda: client.get(f"{in_ws}/memories")),
            (10, lambda: client.post(f"{in_ws}/recall", json={"query": self._text()})),
            (10, lambda: client.get(f"/workspaces/{workspace}/memories/", headers={"HX-Request": "true"})),
            (10, lambda: client.get(f"/chat/api/chats?workspace_id={workspace}")),
            (5, lambda: client.get(f"/workspaces/{workspace}/")),
            (10, lambda: client.get("/chat/api/workspaces")),
            (15, self._save),
            (10, self._edit),
            (5, self._begin_chat),
        ]

    def _text(self) -> str:
        self.number += 1
        return f"{self.random.choice(NAMES)} keeps {self.random.choice(THINGS)} number {self.number} in the cellar"

    async def _save(self) -> http.Response:
        text = self._text()
        answer = await self.client.post(
            f"/chat/api/workspaces/{self.workspace}/memories", json={"content": text}
        )
        if answer.status_code == 201:
            memory = answer.json()["id"]
            self.run.written[memory] = text
            self.memories.append(memory)
        return answer

    async def _edit(self) -> http.Response:
        free = [memory for memory in self.memories[-50:] if memory not in self.editing]
        if not free:
            return await self._save()
        memory, text = self.random.choice(free), self._text()
        self.editing.add(memory)
        self.unsure.add(memory)
        address = f"/chat/api/workspaces/{self.workspace}/memories/{memory}"
        try:
            answer = await self.client.patch(address, json={"content": text})
        finally:
            self.editing.discard(memory)
        if answer.status_code == 200:
            self.run.written[memory] = text
            self.unsure.discard(memory)
        return answer

    async def _begin_chat(self) -> http.Response:
        body = {"workspace_id": self.workspace, "title": self._text()}
        answer = await self.client.post("/chat/api/chats", json=body)
        if answer.status_code == 201:
            self.chats.append(answer.json()["id"])
        return answer

    async def _one(self) -> None:
        act = self.random.choices([act for _, act in self.mix], [weight for weight, _ in self.mix])[0]
        began = time.perf_counter()
        try:
            answer = await act()
        except http.HTTPError as error:
            self.run.failures[type(error).__name__] += 1
            return
        self.run.seconds.append(time.perf_counter() - began)
        if answer.status_code >= 400:
            self.run.failures[str(answer.status_code)] += 1

    async def go(self, rate: float, seconds: float, said: str) -> Run:
        self.run = Run()
        began, sent, under_way = time.perf_counter(), 0, set[asyncio.Task[None]]()
        while sent < rate * seconds:
            await asyncio.sleep(max(0.0, began + sent / rate - time.perf_counter()))
            task = asyncio.create_task(self._one())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            sent += 1
            self.run.sent = sent
            if sent % int(rate) == 0:
                print(f"\r{said}: {sent:,} sent, {len(under_way)} under way   ", end="", flush=True)
        await asyncio.gather(*under_way)
        return self.run

    async def lost(self, runs: list[Run]) -> list[str]:
        """Acknowledged writes that are not there, or not as they were acknowledged last."""
        missing = []
        written = {memory: text for run in runs for memory, text in run.written.items()}
        for memory, text in written.items():
            answer = await self.client.get(f"/chat/api/workspaces/{self.workspace}/memories/{memory}")
            there = answer.status_code == 200
            if not there or (answer.json()["content"] != text and memory not in self.unsure):
                missing.append(memory)
        for chat in self.chats:
            if (await self.client.get(f"/chat/api/chats/{chat}")).status_code != 200:
                missing.append(chat)
        return missing


async def _kill_each(up: Installation, pause: float) -> None:
    for name in KILLED:
        await asyncio.sleep(pause)
        process = await asyncio.to_thread(up.service, name)
        if process is not None:
            process.send_signal(signal.SIGKILL)
            print(f"\r{name} killed                                        ")


async def _signed_in(up: Installation) -> http.AsyncClient:
    limits = http.Limits(max_connections=64, max_keepalive_connections=64)
    client = http.AsyncClient(
        base_url=f"http://127.0.0.1:{up.port}", timeout=30, limits=limits, follow_redirects=True
    )
    await client.get("/accounts/login/")
    form = {
        "login": "ada",
        "password": "difference engine",
        "csrfmiddlewaretoken": client.cookies["csrftoken"],
    }
    done = await client.post("/accounts/login/", data=form)
    assert done.status_code == 200, done.text[:500]
    client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
    return client


def _print(name: str, run: Run) -> None:
    done = sorted(run.seconds) or [0.0]
    p50, p95 = statistics.median(done) * 1000, done[int(len(done) * 0.95)] * 1000
    failures = dict(run.failures) or "none"
    print(
        f"\r{name}: {run.sent:,} requests, p50 {p50:.0f} ms, p95 {p95:.0f} ms, "
        f"{len(run.written):,} memories written, failures {failures}"
    )


async def _measure(up: Installation, rate: float, seconds: float) -> bool:
    client = await _signed_in(up)
    workspace = (await client.get("/chat/api/workspaces")).json()["items"][0]["id"]
    load = Load(client, workspace)
    for _ in range(STORED):
        await load._save()
    first = load.run
    quiet = await load.go(rate, seconds, "steady")
    _print("steady", quiet)
    killing = asyncio.create_task(_kill_each(up, seconds / (len(KILLED) + 1)))
    rough = await load.go(rate, seconds, "with kills")
    await killing
    _print("with kills", rough)
    await asyncio.sleep(5)  # what was killed last is back
    missing = await load.lost([first, quiet, rough])
    print(f"acknowledged writes that are not there: {len(missing)}")
    await client.aclose()
    return not missing and not quiet.failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=100, help="requests a second (100)")
    parser.add_argument("--seconds", type=float, default=60, help="of each of the two minutes (60)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-load-"))
    folder.chmod(0o755)
    up = Installation(folder)
    try:
        up.start()
        held = asyncio.run(_measure(up, options.rate, options.seconds))
    finally:
        if up.process is not None:
            up.end(signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
