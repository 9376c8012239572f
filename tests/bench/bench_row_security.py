"""What row security costs: the same requests to two web processes on one database, by turns, one of them with it.

    python -m tests.bench.bench_row_security [--memories 1000] [--workspaces 10] [--rounds 300]

A whole stack with the real embedder over real HTTP. The person is in so many workspaces and has so many memories in
one of them; as many again are a neighbour's. Printed are medians in milliseconds, and what the one costs more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import httpx2 as http

from tests.stack import Stack, Web, running_stack, signed_up

WARM_UP = 20
Ask = Callable[[http.Client, int], http.Response]


def filled(web: Web, name: str, memories: int, workspaces: int) -> tuple[http.Client, str]:
    """A new person with all that, and the address of the workspace that they have their memories in."""
    person = signed_up(web, name)
    for number in range(workspaces - 1):
        assert person.post("/chat/api/workspaces", json={"name": f"Team {number}"}).status_code == 201
    places = person.get("/chat/api/workspaces").json()["items"]
    place = f"/chat/api/workspaces/{places[0]['id']}"
    for number in range(memories):
        text = (
            f"The deadline of project number {number} is on day {number % 28 + 1} of month {number % 12 + 1}"
        )
        assert person.post(f"{place}/memories", json={"content": text}).status_code == 201
        if number % 20 == 0:
            made = person.post("/chat/api/chats", json={"workspace_id": places[0]["id"]})
            assert made.status_code == 201, made.text
    return person, place


def asked(place: str, memory: str, memories: int) -> dict[str, Ask]:
    page = place.removeprefix("/chat/api")

    def recall(client: http.Client, turn: int) -> http.Response:
        query = f"When is the deadline of project number {turn * 7 % memories}?"
        return client.post(f"{place}/recall", json={"query": query})

    return {
        "recall": recall,
        "list memories (REST)": lambda client, turn: client.get(f"{place}/memories"),
        "list chats (REST)": lambda client, turn: client.get(f"/chat/api/chats?workspace_id={place[21:]}"),
        "list workspaces (REST)": lambda client, turn: client.get("/chat/api/workspaces"),
        "read one (REST)": lambda client, turn: client.get(f"{place}/memories/{memory}"),
        "the page of memories": lambda client, turn: client.get(f"{page}/memories/"),
        "save": lambda client, turn: client.post(
            f"{place}/memories", json={"content": f"Crate {time.monotonic_ns()} stands in row {turn}"}
        ),
    }


def measure(stack: Stack, *, memories: int, workspaces: int, rounds: int) -> None:
    without = stack.web()
    filled(without, "neighbour", memories, 1)
    person, place = filled(without, "bench", memories, workspaces)
    stack.manage("row_security", "--enable")
    stack.env["MEMORYHUB_ROW_SECURITY"] = "on"
    other = stack.web()
    second = http.Client(
        base_url=other.url, cookies=person.cookies, headers=person.headers, timeout=60, follow_redirects=True
    )
    clients = {"without": person, "with": second}
    memory = person.get(f"{place}/memories").json()["items"][0]["id"]
    print(f"{memories} memories, {workspaces} workspaces, {rounds} rounds by turns: median (and p95) in ms")
    for name, ask in asked(place, memory, memories).items():
        taken = defaultdict[str, list[float]](list)
        for turn in range(rounds + WARM_UP):
            order = list(clients) if turn % 2 else [*reversed(clients)]
            for which in order:
                begun = time.perf_counter()
                response = ask(clients[which], turn)
                seconds = time.perf_counter() - begun
                assert response.status_code < 300, response.text
                if turn >= WARM_UP:
                    taken[which].append(seconds * 1000)
        medians = {which: statistics.median(times) for which, times in taken.items()}
        last = {which: statistics.quantiles(times, n=20)[-1] for which, times in taken.items()}
        more = medians["with"] / medians["without"] - 1
        print(
            f"{name:24} without {medians['without']:6.2f} ({last['without']:6.2f}), "
            f"with {medians['with']:6.2f} ({last['with']:6.2f}): {more:+.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--workspaces", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=300)
    args = parser.parse_args()
    limits = {"MEMORYHUB_TURN_RATE": "1000000", "MEMORYHUB_MAX_MEMORIES_PER_PERSON": "0"}
    with (
        tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as folder,
        running_stack(Path(folder), **limits) as stack,
    ):
        measure(stack, memories=args.memories, workspaces=args.workspaces, rounds=args.rounds)


if __name__ == "__main__":
    main()
