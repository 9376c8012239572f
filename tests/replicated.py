"""A primary and a replica: real PostgreSQL servers with streaming replication, on loopback by default.

They are created, promoted and rejoined by the commands of docs/operations.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx2 as http
import psycopg

from memoryhub.local.postgres import DATABASE, USER, EmbeddedPostgres
from tests.documented import documented, statements
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment, lend_to
from tests.stack import Stack, free_port, static_files_in

REPLICATES = {
    "wal_level": "replica",
    "max_wal_senders": "5",
    "wal_keep_size": "256MB",
    "wal_log_hints": "on",  # pg_rewind requires it without checksums
    "full_page_writes": "on",
    "hot_standby_feedback": "on",
}
THEIRS = "/var/lib/postgresql/18/main"  # the data folder in the docs
SYNCHRONOUS = """
SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'
"""


_numbers = count()


class Server(EmbeddedPostgres):
    """A primary or a replica. Its socket is not used."""

    def __init__(self, data_dir: Path, host: str = "127.0.0.1", *, durable: bool = False) -> None:
        super().__init__(data_dir, durable=durable)
        self.host, self.port = host, free_port()
        data_dir.mkdir(exist_ok=True)
        data_dir.chmod(0o755)

    @property
    def url(self) -> str:
        return f"postgres://{USER}@{self.host}:{self.port}/{DATABASE}"

    @property
    def place(self) -> str:
        return f"host={self.host} port={self.port} user={USER}"

    def command(self) -> list[str]:
        more = {"listen_addresses": self.host, "port": str(self.port), **REPLICATES}
        return [*super().command(), *(f"--{name}={value}" for name, value in more.items())]

    def initialise(self) -> None:
        """Write the settings to the configuration as well: pg_rewind starts the server without the command line."""
        super().initialise()
        with (self.cluster / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = {value}\n" for name, value in REPLICATES.items())

    def maintenance_settings(self) -> dict[str, Any]:
        place: dict[str, Any] = {"host": self.host, "port": self.port, "user": USER}
        return {**place, "dbname": "postgres", "autocommit": True, "connect_timeout": 5}

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the server's account."""
        command = self._launch(program, *arguments, death_signal=signal.SIGKILL)
        done = subprocess.run(command, env=self.environment(), cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def ask(self, statement: str) -> Any:
        """Return the first value of a statement's result."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(statement)
            row = found.fetchone() if found.description else None
        return row[0] if row else None

    def follow(self, primary: Server, name: str) -> None:
        """Create this server as a copy of the primary, and follow it."""
        self._make_folders()
        source = {
            "host=a.internal user=replicator application_name=b": f"{primary.place} application_name={name}"
        }
        self.run(*documented("pg_basebackup -d", source | {THEIRS: str(self.cluster)}))
        self.start()

    def _make_folders(self) -> None:
        for folder in (self.data_dir / "run", self.data_dir / "logs"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        self._make_folder(self.socket_folder)
        self._make_folder(self.cluster)

    def kill(self) -> None:
        """Send SIGKILL to the process group, as if the machine failed."""
        assert self._process is not None, "it runs"
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def promote(self) -> None:
        self.run(*documented("pg_ctl promote", {THEIRS: str(self.cluster)}))

    def come_back(self, primary: Server, name: str) -> None:
        """Rejoin a dead primary as a replica of the new primary."""
        self.clear_leftovers()
        source = {
            "host=b.internal user=postgres": primary.place,
            "application_name=a": f"application_name={name}",
        }
        self.run(*documented("pg_rewind", source | {THEIRS: str(self.cluster)}))
        self.start()


class Pair:
    """A ``primary`` and a ``replica``, which change places on promotion."""

    def __init__(self, primary: Server, replica: Server) -> None:
        self.primary, self.replica = primary, replica
        lend_to(self.primary.data_dir)
        self.primary.initialise()
        self.primary.start()
        for part in ("CREATE ROLE", "wal_level"):
            self._ask(part)
        self.replica.follow(self.primary, "two")

    def wait_for_replica(self) -> None:
        """Make every commit wait for the replica, until one of the two is killed."""
        self._ask("'FIRST 1 (b)'", {"(b)": "(*)"})
        wait_until(lambda: self.primary.ask(SYNCHRONOUS), "the replica is a synchronous one")

    def follow_again(self) -> None:
        """Restart or resume the replica, and wait until it has everything of the primary."""
        if self.replica._process is None or self.replica._process.poll() is not None:
            self.replica.start()
        self.replica.ask("SELECT pg_wal_replay_resume()")
        reached = self.primary.ask("SELECT pg_current_wal_lsn()")
        wait_until(
            lambda: self.replica.ask(f"SELECT pg_last_wal_replay_lsn() >= '{reached}'"), "it has caught up"
        )

    def go_on_alone(self) -> None:
        """Let commits go on without the dead replica."""
        self._ask("synchronous_standby_names = ''")

    def _ask(self, part: str, put_in: dict[str, str] | None = None) -> None:
        """Run a documented statement on the primary."""
        for statement in statements(part, put_in):
            self.primary.ask(statement)

    def change_places(self) -> None:
        """Promote the replica; the dead primary becomes the next replica."""
        self.replica.promote()
        self.primary, self.replica = self.replica, self.primary

    def environment(self) -> dict[str, str]:
        """Return the environment of every host, which names both servers in any role."""
        both = [self.primary, self.replica]
        hosts = ",".join(f"{each.host}:{each.port}" for each in both)
        return {
            "DATABASE_URL": f"postgres://{USER}@{hosts}/{DATABASE}",
            "MEMORYHUB_REPLICA_URLS": ",".join(each.url for each in both),
        }

    def stop(self) -> None:
        for server in (self.replica, self.primary):
            server.stop()


@contextmanager
def replicated_stack(folder: Path, **env: str) -> Iterator[tuple[Stack, Pair]]:
    """Run a primary and a replica, without other processes so far. ``env`` is for every process."""
    folder.chmod(0o755)
    pair = Pair(Server(folder / "one"), Server(folder / "two"))
    stack = Stack(folder, environment(folder, **pair.environment() | env), pair.primary)
    try:
        static_files_in(folder)
        yield stack, pair
    finally:
        stack.stop()
        pair.stop()


class Traffic:
    """A writer and a reader at each web process until stopped, with their answers.

    They pause this many seconds between requests, to leave CPU time to other processes.
    """

    def __init__(self, clients: list[http.Client], place: str, pause: float = 0.0) -> None:
        self.place, self.pause, self.stopping = place, pause, threading.Event()
        self.acknowledged: set[str] = set()
        self.writes: list[tuple[float, http.Response]] = []
        self.reads: list[tuple[float, http.Response]] = []
        self.threads = ThreadPoolExecutor(2 * len(clients))
        self.running = [
            self.threads.submit(self._write, client, n) for n, client in zip(_numbers, clients, strict=False)
        ]
        self.running += [self.threads.submit(self._read, client) for client in clients]

    def _write(self, client: http.Client, hall: int) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            content = f"Locker {number} of hall {hall} has the number {number * 7919 + hall}."
            answer = client.post(f"{self.place}/memories", json={"content": content, "dedupe": "create"})
            assert answer.status_code in {201, 503}, answer.text
            self.writes.append((time.monotonic(), answer))
            if answer.status_code == 201:
                self.acknowledged.add(content)
            self.stopping.wait(self.pause)

    def _read(self, client: http.Client) -> None:
        while not self.stopping.is_set():
            for answer in (
                client.get(f"{self.place}/memories"),
                client.post(f"{self.place}/recall", json={"query": "which number has the locker?"}),
            ):
                self.reads.append((time.monotonic(), answer))
            self.stopping.wait(self.pause)

    def has_written(self, number: int) -> bool:
        """Return whether more than this many writes were acknowledged. Raises a writer's or reader's exception."""
        for each in self.running:
            if each.done():
                each.result()
        return len(self.acknowledged) > number

    def stop(self) -> None:
        self.stopping.set()
        for each in self.running:
            each.result(60)
        self.threads.shutdown()

    def since(self, when: float, answers: list[tuple[float, http.Response]]) -> list[http.Response]:
        return [answer for at, answer in list(answers) if at > when]
