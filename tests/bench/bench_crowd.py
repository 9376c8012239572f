"""What a crowd is told, and how soon: by two web processes themselves, and by HAProxy before them.

    python -m tests.bench.bench_crowd [--programs 600] [--seconds 20]

So many programs list a person's memories, each anew as soon as it has its answer, and a second after a 503. First they
ask the processes directly, half of them each; then through HAProxy with ``deploy/haproxy/haproxy.cfg``. Needs
``apt-get install haproxy``. To be read as ratios: whatever else the machine does is in both.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench_load import Person
from tests.bench.thin_client import NOT_THERE, ThinClient
from tests.haproxy import proxy_before
from tests.stack import running_stack

LISTED = 20  # memories
PATIENCE = 120.0


async def crowd(name: str, ports: Sequence[int], person: Person, options: argparse.Namespace) -> None:
    took: defaultdict[str, list[float]] = defaultdict(list)
    each = options.programs // len(ports)
    clients = [ThinClient(port, connections=each, patience=PATIENCE) for port in ports]
    path, began = f"/chat/api/workspaces/{person.workspace}/memories", time.perf_counter()

    async def program(number: int) -> None:
        client = clients[number % len(clients)]
        await asyncio.sleep(number / options.programs)  # they come within a second
        while time.perf_counter() - began < options.seconds:
            asked = time.perf_counter()
            try:
                said = str((await client.ask(person.who, "GET", path))[0])
            except (*NOT_THERE, TimeoutError) as error:
                said = type(error).__name__
            took[said].append(time.perf_counter() - asked)
            if said != "200":
                await asyncio.sleep(1)

    await asyncio.gather(*(program(number) for number in range(options.programs)))
    for said, seconds in sorted(took.items()):
        seconds.sort()
        p50, p95 = (seconds[int(len(seconds) * part)] * 1000 for part in (0.5, 0.95))
        each_second = len(seconds) / options.seconds
        print(
            f"{name:<8} {said}: {each_second:5.0f} a second, p50 {p50:6.0f} ms, p95 {p95:6.0f} ms", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=600, help="at once (600)")
    parser.add_argument("--seconds", type=float, default=20, help="of each (20)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-crowd-") as name:
        folder = Path(name)
        with running_stack(folder, MEMORYHUB_EMBEDDING_MODEL="none") as stack:
            webs = [stack.web(), stack.web()]
            ports, person = [web.port for web in webs], Person(webs[0], "olga")
            place = f"/chat/api/workspaces/{person.workspace}/memories"
            for number in range(LISTED):
                body = {"content": f"Locker {number} is free."}
                asyncio.run(ThinClient(ports[0]).ask(person.who, "POST", place, body))
            asyncio.run(crowd("direct", ports, person, options))
            with proxy_before(ports, folder) as proxy:
                asyncio.run(crowd("HAProxy", [proxy.port], person, options))


if __name__ == "__main__":
    main()
