"""Measure two web hosts, two workers, a primary and a replica behind HAProxy under load, while each is killed in turn.

    python -m tests.bench.bench_hosts [--rate 200] [--seconds 300] [--decides-after 2] [--mix light]

Each is a host of its own (``tests.bench.namespaces``): a network namespace with an address on a bridge, and a view of
the files in which no other host's are; what they share is the folder of files. The proxy is Debian's HAProxy with
``deploy/haproxy/haproxy.cfg``. Eight people list, read, recall, save and edit (with an ``Idempotency-Key``) through it,
on time, whether earlier requests have been answered or not; times count from when they were due (``--mix light``:
mostly what open pages ask for again and again, so that two cores can carry 200 a second). During this all processes of
one host after the other get SIGKILL; it comes back before the next goes. The replica is a synchronous one: when it has
died the primary goes on alone, and when the primary has died the replica is promoted, ``--decides-after`` seconds
later, by the commands of docs/operations.md, as an operator would. At the end every write that was acknowledged must be
there, and none twice.

Needs root, Linux, and ``apt-get install haproxy iproute2``. Ctrl-C takes everything down.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import httpx2 as http

from tests.bench.bench_load import STORED, Load, Person, lost
from tests.bench.namespaces import NETWORK, Host, Network, apart, what_is_missing, which
from tests.bench.thin_client import NOT_THERE, ThinClient
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment
from tests.replicated import Pair, Server
from tests.stack import ROOT, Web, signed_up, static_files_in
from tests.verification.test_hosts import KEYS, next_version

CONFIGURATION = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
PEOPLE, UNDER_WAY, PATIENCE = 8, 400, 60.0
REBOOTS = 2.0  # seconds that a killed host stays down
DOCUMENT_EVERY, READING = 5.0, 600.0  # seconds between two uploads, and for reading what is left at the end
PORT = 8000
# Shares of a hundred requests.
MIXES = {
    "full": {"list memories": 45, "read one memory": 20, "recall": 15, "save": 15, "edit": 5},
    "light": {"badge": 45, "read one memory": 40, "list memories": 10, "recall": 1, "save": 3, "edit": 1},
}
WRITES = {"save", "edit"}


class DatabaseHost(Server):
    """A PostgreSQL server that runs on its own host."""

    def __init__(self, host: Host) -> None:
        self.on = host
        super().__init__(host.folder / "data", host.address, durable=True)

    def _launch(self, program: str, *arguments: str, death_signal: signal.Signals) -> list[str]:
        return self.on.inside(super()._launch(program, *arguments, death_signal=death_signal))

    def initialise(self) -> None:
        super().initialise()
        with (self.cluster / "pg_hba.conf").open("a") as rules:
            rules.writelines(f"host {what} all {NETWORK} trust\n" for what in ("all", "replication"))

    def kill(self) -> None:
        self.on.kill()
        assert self._process is not None, "it ran"
        self._process.wait()


class Hub:
    """All hosts. Created inside ``apart``."""

    def __init__(self, folder: Path) -> None:
        network = Network(folder)
        self.proxy = network.host("proxy")
        self.webs = [network.host(name) for name in ("web1", "web2")]
        self.workers = [network.host(name) for name in ("worker1", "worker2")]
        self.pair = Pair(*(DatabaseHost(network.host(name)) for name in ("db1", "db2")))
        self.pair.wait_for_replica()
        self.env = self.pair.environment() | KEYS
        self.env |= {"MEMORYHUB_FILES_DIR": str(network.shared), "MEMORYHUB_WEB_PROCESSES": "1"}
        self.env |= {"MEMORYHUB_ALLOWED_HOSTS": self.proxy.address, "MEMORYHUB_TRUSTED_PROXIES": "1"}
        for host in (*self.webs, *self.workers):
            (host.folder / "data").mkdir()
            static_files_in(host.folder / "data")
            self.begin(host)
        for host in (*self.webs, *self.workers):
            self.wait_for(host)
        configuration = self.proxy.folder / "haproxy.cfg"
        text = CONFIGURATION.read_text().replace("/run/haproxy/", f"{self.proxy.folder}/")
        for host in self.webs:
            text = text.replace(f"{host.name}.internal", host.address)
        configuration.write_text(text)
        program = [which("haproxy") or "haproxy", "-db", "-f", str(configuration)]
        self.proxy.start(*program, env=environment(self.proxy.folder), code=self.proxy.folder)
        wait_until((self.proxy.folder / "admin.sock").exists, "the proxy is there")
        for host in self.webs:
            wait_until(lambda: self.proxy_says_up(host), f"{host.name} is up")  # noqa: B023  (waited for at once)
        for host in network.hosts:
            assert set(host.sees()) <= {host.name, network.shared.name}, host.sees()

    def begin(self, host: Host, code: Path = ROOT) -> None:
        part = "web" if host in self.webs else "worker"
        command = [sys.executable, "manage.py", "up", "--only", part]
        command += ["--host", host.address, "--port", str(PORT)]
        host.start(*command, env=environment(host.folder / "data", **self.env), code=code)

    def wait_for(self, host: Host) -> None:
        def is_ready() -> bool:
            assert host.process is not None
            assert host.process.poll() is None, host.said.read_text()[-3000:]
            return "MemoryHub is ready" in host.said.read_text()

        wait_until(is_ready, f"{host.name} is ready")

    def proxy_says_up(self, web: Host) -> bool:
        assert self.proxy.process is not None and self.proxy.process.poll() is None, (
            self.proxy.said.read_text()
        )
        rows = [line.split(",") for line in self.tell_proxy("show stat").splitlines()]
        return any(row[:2] == ["web", web.name] and row[17].startswith("UP") for row in rows if len(row) > 17)

    def tell_proxy(self, what: str) -> str:
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(str(self.proxy.folder / "admin.sock"))
            talk.sendall(f"{what}\n".encode())
            return talk.makefile().read()

    # Failures and upgrades of hosts.

    def kill(self, host: Host) -> None:
        host.kill()
        time.sleep(REBOOTS)
        self.begin(host)
        self._is_back(host)

    def _is_back(self, host: Host) -> None:
        self.wait_for(host)
        if host in self.webs:
            wait_until(lambda: self.proxy_says_up(host), f"{host.name} is up")

    def upgrade(self, host: Host) -> None:
        newer = next_version(host.folder / "newer", True)
        self.tell_proxy(f"set server web/{host.name} state maint")
        host.stop()
        self.begin(host, newer)
        self.wait_for(host)
        self.tell_proxy(f"set server web/{host.name} state ready")
        self._is_back(host)

    def kill_replica(self, decides_after: float) -> None:
        self.pair.replica.kill()
        time.sleep(decides_after)
        self.pair.go_on_alone()
        self.pair.replica.start()
        self.pair.wait_for_replica()

    def kill_primary(self, decides_after: float) -> None:
        self.pair.primary.kill()
        time.sleep(decides_after)
        self.pair.change_places()
        self.pair.replica.come_back(self.pair.primary, "back")
        self.pair.wait_for_replica()

    def stored_twice(self) -> int:
        return int(self.pair.primary.ask("SELECT count(*) - count(DISTINCT content) FROM memories_memory"))


@dataclass
class Answered:
    due: float
    at: float
    kind: str
    failed: str = ""


@dataclass
class Happening:
    what: str
    began: float
    back: float = 0.0


class Steady(Load):
    """A steady load: a fixed number of requests a second, at most UNDER_WAY of them unanswered."""

    def __init__(self, client: ThinClient, people: list[Person], mix: dict[str, int]) -> None:
        super().__init__(client, people)
        self.mix = mix
        self.answers: list[Answered] = []
        self.over = False

    def once(self) -> str:
        return f"Idempotency-Key: {self.random.getrandbits(64):016x}\r\n"

    async def _save(self, person: Person, api: str) -> int:
        text = self.text()
        body = {"content": text, "dedupe": "create"}
        status, answer = await self.client.ask(person.who + self.once(), "POST", f"{api}/memories", body)
        if status == 201:
            person.memories[json.loads(answer)["id"]] = text
        return status

    async def _one(self, due: float) -> None:
        kind, person = (
            self.random.choices([*self.mix], [*self.mix.values()])[0],
            self.random.choice(self.people),
        )
        try:
            status = await self.act(kind, person)
            failed = "" if status < 400 else str(status)
        except (*NOT_THERE, TimeoutError) as error:
            failed = type(error).__name__
        self.answers.append(Answered(due, time.perf_counter(), kind, failed))

    async def run_until_over(self, rate: float) -> None:
        began, number, under_way = time.perf_counter(), 0, set[asyncio.Task[None]]()
        while not self.over:
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            number += 1
            if len(under_way) >= UNDER_WAY:
                self.answers.append(Answered(due, due, "any", f"not sent: {UNDER_WAY} are unanswered"))
                continue
            task = asyncio.create_task(self._one(due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)


class Documents:
    """Documents uploaded one after the other, for the workers to read."""

    def __init__(self, person: http.Client) -> None:
        workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
        self.person, self.place = person, f"/chat/api/workspaces/{workspace}/documents"
        self.brought: list[str] = []
        self.failures: Counter[str] = Counter()

    def bring(self, number: int) -> None:
        file = {"file": (f"{number}.txt", f"On day {number} the bins go out.".encode())}
        try:
            answer = self.person.post(
                self.place, files=file, headers={"Idempotency-Key": f"document-{number}"}
            )
        except http.HTTPError as error:
            self.failures[type(error).__name__] += 1
            return
        if answer.is_success:
            self.brought.append(answer.json()["id"])
        else:
            self.failures[str(answer.status_code)] += 1

    async def keep_bringing(self) -> None:
        for number in count():
            await asyncio.to_thread(self.bring, number)
            await asyncio.sleep(DOCUMENT_EVERY)

    def wait_until_read(self) -> list[str]:
        """Wait until the workers have read all documents. Return the states of those that were not read in time."""
        began = time.perf_counter()
        while unread := self._unread():
            if time.perf_counter() - began > READING:
                break
            time.sleep(2)
        read, seconds = len(self.brought) - len(unread), time.perf_counter() - began
        print(
            f"documents read by the workers: {read} of {len(self.brought)}, {seconds:.0f} s after the load",
            end="; ",
        )
        print(f"others: {dict(Counter(unread)) or 'none'}; not taken: {dict(self.failures) or 'none'}")
        return unread

    def _unread(self) -> list[str]:
        found = [self.person.get(f"{self.place}/{each}").json()["status"] for each in self.brought]
        return [status for status in found if status != "ready"]


async def go_through_it(hub: Hub, options: argparse.Namespace, happenings: list[Happening]) -> None:
    acts: list[tuple[str, Callable[[], None]]] = [
        *((f"{host.name} killed", partial(hub.kill, host)) for host in (*hub.webs, *hub.workers)),
        ("replica killed", partial(hub.kill_replica, options.decides_after)),
        ("primary killed", partial(hub.kill_primary, options.decides_after)),
        ("web2 upgraded", partial(hub.upgrade, hub.webs[1])),
    ]
    began, pause = time.perf_counter(), options.seconds / (len(acts) + 1)
    happenings.append(Happening("all well", began))
    for number, (what, act) in enumerate(acts, start=1):
        await asyncio.sleep(max(pause / 4, began + number * pause - time.perf_counter()))
        happenings.append(Happening(what, time.perf_counter()))
        await asyncio.to_thread(act)
        happenings[-1].back = time.perf_counter()
        print(f"{what}, back after {happenings[-1].back - happenings[-1].began:.1f} s", flush=True)
    await asyncio.sleep(max(pause / 4, began + options.seconds - time.perf_counter()))


async def run(hub: Hub, options: argparse.Namespace) -> bool:
    client = ThinClient(80, host=hub.proxy.address, connections=UNDER_WAY, patience=PATIENCE)
    assert hub.proxy.process is not None
    front = Web(80, hub.proxy.process, hub.proxy.address)
    load = Steady(client, [Person(front, f"person{number}") for number in range(PEOPLE)], MIXES[options.mix])
    for person in load.people:
        for _ in range(STORED):
            assert await load.act("save", person) == 201
    documents = Documents(signed_up(front, "clerk"))
    happenings: list[Happening] = []
    sending = asyncio.create_task(load.run_until_over(options.rate))
    bringing = asyncio.create_task(documents.keep_bringing())
    await go_through_it(hub, options, happenings)
    bringing.cancel()
    load.over = True
    await sending
    report(load, happenings)
    unread = await asyncio.to_thread(documents.wait_until_read)
    missing = [id for person in load.people for id in await lost(client, person)]
    written, twice = sum(len(person.memories) for person in load.people), hub.stored_twice()
    print(f"acknowledged writes that are not there: {len(missing)} of {written:,}; there twice: {twice}")
    return not missing and not twice and not unread


def report(load: Steady, happenings: list[Happening]) -> None:
    answers = load.answers
    took = max(each.at for each in answers) - happenings[0].began
    print(f"{len(answers):,} requests in {took:.0f} s")
    for kind in [*load.mix, "all"]:
        own = [each for each in answers if kind in {"all", each.kind}]
        print(f"  {kind:<16} {line_of(own)}")
    print("from one to the next, with the longest time without an answered read, and without a write:")
    ends = [*(each.began for each in happenings[1:]), float("inf")]
    for each, end in zip(happenings, ends, strict=True):
        own = [answer for answer in answers if each.began <= answer.due < end]
        gaps = [longest_gap(own, each.began, writes=writes) for writes in (False, True)]
        print(f"  {each.what:<16} {gaps[0]:5.1f} s {gaps[1]:5.1f} s {line_of(own)}")


def line_of(answers: list[Answered]) -> str:
    done = sorted(each.at - each.due for each in answers if not each.failed)
    failures = Counter(f"{each.kind}: {each.failed}" for each in answers if each.failed)
    if not done:
        return f"{len(answers):6,}   none answered; failures: {dict(failures)}"
    p50, p95 = statistics.median(done) * 1000, done[int(len(done) * 0.95)] * 1000
    return f"{len(answers):6,}   p50 {p50:6.0f} ms   p95 {p95:6.0f} ms   failures: {dict(failures) or 'none'}"


def longest_gap(answers: list[Answered], began: float, *, writes: bool) -> float:
    """Return the longest time in seconds without a successful answer, among writes or among reads."""
    times = sorted(each.at for each in answers if not each.failed and (each.kind in WRITES) == writes)
    return max((later - sooner for sooner, later in pairwise([began, *times])), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200, help="requests a second (200)")
    parser.add_argument(
        "--seconds", type=float, default=300, help="at least; longer where hosts come back late (300)"
    )
    parser.add_argument(
        "--decides-after", type=float, default=2.0, help="seconds until a dead server is noticed (2)"
    )
    parser.add_argument("--mix", choices=MIXES, default="full", help="what is asked for (full)")
    # Runs the same program inside its namespaces
    parser.add_argument("--within", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.within:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # the first process ends all others
        raise SystemExit(0 if asyncio.run(run(Hub(options.within), options)) else 1)
    if why := what_is_missing("haproxy"):
        raise SystemExit(why)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="memoryhub-hosts-") as folder:
        Path(folder).chmod(0o755)
        command = [sys.executable, "-m", "tests.bench.bench_hosts", *sys.argv[1:], "--within", folder]
        status = apart(command)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
