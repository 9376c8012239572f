"""Measure how many more requests two and four web processes answer than one, as ratios within one run.

    python -m tests.bench.bench_processes [--seconds 4] [--rounds 3] [--at-once 16]

Four web processes on one database, everything real. In turn one, two and all four get requests for lists and recalls as
fast as they answer; all share this machine's cores with the database and the client.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from itertools import cycle
from pathlib import Path

from tests.bench.thin_client import ThinClient
from tests.stack import running_stack, signed_up

COUNTS = (1, 2, 4)
STORED = 200


async def answered(clients: list[ThinClient], who: str, place: str, seconds: float, at_once: int) -> float:
    """Return the requests a second of ``at_once`` clients, each sending one after the other. All must succeed."""
    end, done = time.perf_counter() + seconds, 0

    async def one(client: ThinClient) -> None:
        nonlocal done
        while time.perf_counter() < end:
            for method, path, body in (
                ("GET", f"{place}/memories", None),
                ("POST", f"{place}/recall", {"query": "which number has locker 77?"}),
            ):
                status, text = await client.ask(who, method, path, body)
                assert status == 200, text
                done += 1

    turns = cycle(clients)
    began = time.perf_counter()
    await asyncio.gather(*(one(next(turns)) for _ in range(at_once)))
    return done / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="memoryhub-processes-") as name,
        running_stack(Path(name)) as stack,
    ):
        webs = [stack.web() for _ in range(max(COUNTS))]
        person = signed_up(webs[0], "olga")
        place = f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"
        for number in range(STORED):
            saved = {"content": f"Locker {number} has the number {number * 7919}.", "dedupe": "create"}
            person.post(f"{place}/memories", json=saved).raise_for_status()
        cookies = "; ".join(f"{each.name}={each.value}" for each in person.cookies.jar)
        who = f"Cookie: {cookies}\r\nX-CSRFToken: {person.headers['X-CSRFToken']}\r\n"
        found: dict[int, list[float]] = {each: [] for each in COUNTS}
        for _ in range(options.rounds + 1):  # the first warms up
            for number in COUNTS:
                clients = [ThinClient(web.port) for web in webs[:number]]
                rate = asyncio.run(answered(clients, who, place, options.seconds, options.at_once))
                found[number].append(rate)
    print(f"{os.cpu_count()} cores, {options.at_once} requests at once, lists and recalls alternating")
    for number, rates in found.items():
        ratios = [rate / one for rate, one in zip(rates[1:], found[1][1:], strict=True)]
        print(
            f"{number} web process{'' if number == 1 else 'es'}: {statistics.median(rates[1:]):.0f} a second, "
            f"{statistics.median(ratios):.2f} of one (from {min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
