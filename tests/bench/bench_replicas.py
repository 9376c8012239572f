"""Measure the load a replica takes off the primary, the cost of reading from it, and failures when the primary dies.

    python -m tests.bench.bench_replicas [--reads 400] [--rounds 3] [--decides-after 2]

A primary and a replica on loopback, the replica synchronous, everything real. First a web process that knows the
replica and one that does not answer lists and recalls in turns, while somebody else writes. Then, each round, the
primary is killed (SIGKILL) under writers and readers at both of two web processes; the replica is promoted
``--decides-after`` seconds later, as an operator would, and the old primary comes back by pg_rewind.
"""

import argparse
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2 as http
import psycopg

from tests.memoryhub.local.processes import wait_until
from tests.replicated import Pair, Traffic, replicated_stack
from tests.stack import Web, signed_up

TOKEN = "of the monitoring alone"
STORED = 300


def place_of(person: http.Client) -> str:
    return f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"


def answered_by(web: Web) -> dict[str, int]:
    text = http.get(f"{web.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    return {
        by: int(number) for by, number in re.findall(r'memoryhub_reads_total\{by="([\w-]+)"\} (\d+)', text)
    }


def in_turns(reader: http.Client, plain: Web, knowing: Web, writer: http.Client, reads: int) -> None:
    """Time each read once in either web process, with another person's write before every pair."""
    place, elsewhere = place_of(reader), place_of(writer)
    for number in range(STORED):
        saved = {"content": f"Locker {number} has the number {number * 7919}.", "dedupe": "create"}
        reader.post(f"{place}/memories", json=saved).raise_for_status()
    clients = {
        name: http.Client(base_url=web.url, cookies=reader.cookies, headers=reader.headers, timeout=60)
        for name, web in (("primary", plain), ("replica", knowing))
    }
    kinds: dict[str, Callable[[http.Client], http.Response]] = {
        "list": lambda client: client.get(f"{place}/memories"),
        "recall": lambda client: client.post(
            f"{place}/recall", json={"query": "which number has locker 77?"}
        ),
    }
    before = answered_by(knowing)
    for kind, ask in kinds.items():
        took: dict[str, list[float]] = {name: [] for name in clients}
        for number in range(reads):
            writer.post(f"{elsewhere}/memories", json={"content": f"{kind} {number}", "dedupe": "create"})
            for name in sorted(clients, reverse=bool(number % 2)):
                began = time.perf_counter()
                ask(clients[name]).raise_for_status()
                took[name].append(time.perf_counter() - began)
        middle = {name: statistics.median(each) * 1000 for name, each in took.items()}
        print(
            f"{kind}: p50 {middle['primary']:.1f} ms of the primary alone, {middle['replica']:.1f} ms with the replica"
            f" ({middle['replica'] / middle['primary']:.2f} times)"
        )
    after = answered_by(knowing)
    replica, all_of = after["replica"] - before.get("replica", 0), sum(after.values()) - sum(before.values())
    print(f"of {all_of} reads where the replica is known it answered {replica / all_of:.1%}")


def one_failover(pair: Pair, traffic: Traffic, decides_after: float) -> None:
    """Kill the primary, promote the replica, and report what happened to the requests in between."""
    enough = len(traffic.acknowledged) + 20
    wait_until(lambda: traffic.has_written(enough), "writes are acknowledged")
    killed = time.monotonic()
    pair.primary.kill()
    time.sleep(decides_after)
    began = time.monotonic()
    pair.change_places()
    promoted = time.monotonic()
    wait_until(
        lambda: any(answer.status_code == 201 for answer in traffic.since(promoted, traffic.writes)),
        "writes go on",
    )
    first = next(at for at, answer in traffic.writes if at > promoted and answer.status_code == 201)
    enough = len(traffic.acknowledged) + 20
    wait_until(lambda: traffic.has_written(enough), "and on")
    reads, writes = traffic.since(killed, traffic.reads), traffic.since(killed, traffic.writes)
    gaps = [later - sooner for (sooner, _), (later, _) in zip(traffic.reads, traffic.reads[1:], strict=False)]
    with psycopg.connect(pair.primary.url) as connection:
        kept = {
            content for (content,) in connection.execute("SELECT content FROM memories_memory").fetchall()
        }
    print(
        f"killed: {first - killed:.1f} s without writes ({decides_after:.0f} of them until somebody decided, "
        f"{promoted - began:.1f} to promote); writes {dict(Counter(each.status_code for each in writes))}, "
        f"reads {dict(Counter(each.status_code for each in reads))}, the longest time without one {max(gaps):.1f} s; "
        f"lost of {len(traffic.acknowledged)} acknowledged: {len(traffic.acknowledged - kept)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reads", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--decides-after", type=float, default=2.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="memoryhub-replicas-") as folder,
        replicated_stack(Path(folder), MEMORYHUB_METRICS_TOKEN=TOKEN) as (stack, pair),
    ):
        knowing, other = stack.web(), stack.web()
        known = stack.env.pop("MEMORYHUB_REPLICA_URLS")
        plain = stack.web()
        stack.env["MEMORYHUB_REPLICA_URLS"] = known
        pair.wait_for_replica()
        reader, writer = (signed_up(other, name) for name in ("olga", "paul"))
        in_turns(reader, plain, knowing, writer, options.reads)
        stack.kill(plain.process)
        place = place_of(writer)
        for _ in range(options.rounds):
            clients = [
                http.Client(base_url=web.url, cookies=writer.cookies, headers=writer.headers, timeout=60)
                for web in (knowing, other)
            ]
            traffic = Traffic(clients, place)
            try:
                one_failover(pair, traffic, options.decides_after)
            finally:
                traffic.stop()
            pair.replica.come_back(pair.primary, "back")
            pair.wait_for_replica()


if __name__ == "__main__":
    main()
