"""A whole installation of real processes in a temporary folder: database, web servers, worker, scripted model.

For behaviour that only real processes have: two web processes, killed workers, browsers, load.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx2 as http
import psycopg

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from memoryhub.local.stack import WEB_SERVER
from tests.migrated import CACHE, environment, lend_to
from tests.typed import Typist

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "correct horse battery"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Web:
    port: int
    process: subprocess.Popen[bytes]
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@dataclass
class Stack:
    folder: Path
    env: dict[str, str]
    database: EmbeddedPostgres
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _typist: Typist | None = None

    def manage(self, *arguments: str) -> str:
        """Run a management command. Return its output."""
        status, said = self.typed(*arguments)
        assert status == 0, said
        return said

    def typed(self, *arguments: str) -> tuple[int, str]:
        """Run a management command. Return its status and output; one process runs all with the same environment."""
        if self._typist is None or self._typist.env != self.env:
            self._leave()
            self._typist = Typist(self.env)
        return self._typist.type(*arguments)

    def _leave(self) -> None:
        if self._typist is not None:
            self._typist.leave()

    def start(self, name: str, *command: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self.env | env, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process

    def web(self, **env: str) -> Web:
        port = free_port()
        uvicorn = (sys.executable, *WEB_SERVER, "--port", str(port), "--timeout-graceful-shutdown", "1")
        web = Web(port, self.start(f"web-{port}", *uvicorn, **env))
        deadline = time.monotonic() + 60
        while True:
            try:
                http.get(f"{web.url}/accounts/login/")
                return web
            except http.TransportError:
                assert web.process.poll() is None, (self.folder / f"web-{port}.log").read_text()
                assert time.monotonic() < deadline, "the web server did not come up"
                time.sleep(0.1)

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start("worker", sys.executable, "manage.py", "qcluster")

    def jobs_in_queue(self) -> int:
        """Return the number of waiting or running jobs."""
        with psycopg.connect(**connection_settings(self.folder)) as connection:  # type: ignore[arg-type]
            found = connection.execute("SELECT count(*) FROM django_q_ormq").fetchone()
        return int(found[0]) if found else 0

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL to the process and its children, as an out-of-memory killer might."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_database(self) -> None:
        """Kill the server by SIGKILL and start it again, as a supervisor would."""
        database = self.database
        assert database._process is not None, "it runs"
        self.kill(database._process)
        database.start()

    def stop(self) -> None:
        self._leave()
        for process in reversed(self.processes):
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                process.wait()


def signed_up(web: Web, username: str) -> http.Client:
    """Return a client with a session of a new account, and the CSRF token in its headers."""
    client = http.Client(base_url=web.url, timeout=60, follow_redirects=True)
    sign_up(client, username)
    return client


def sign_up(client: http.Client, username: str) -> None:
    client.get("/accounts/signup/")
    form = {"username": username, "password1": PASSWORD, "password2": PASSWORD}
    token = client.cookies["csrftoken"]
    done = client.post("/accounts/signup/", data=form | {"csrfmiddlewaretoken": token})
    assert done.status_code == 200, done.text
    client.headers["X-CSRFToken"] = client.cookies["csrftoken"]


def key_of(person: http.Client, workspace: str) -> str:
    """Turn on memory and return a write key."""
    token = {"csrfmiddlewaretoken": person.headers["X-CSRFToken"]}
    person.post("/profile/memory/", data={**token, "memory": "on"})
    person.post("/accounts/reauthenticate/", data={**token, "password": PASSWORD})
    asked = {"name": "a program", "workspace_id": workspace, "scope": "write"}
    made = person.post("/chat/api/keys", json=asked)
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


PREPARED = CACHE.parent / "prepared"
PREPARE = """
from memoryhub.management.commands.prepare import Command
from memoryhub.management.commands.prepare import compile_translations
compile_translations()
Command()._collect_static_files()
"""


@cache
def _prepare() -> None:
    """Collect the static files and compile the catalogues; both skip unchanged files."""
    PREPARED.mkdir(parents=True, exist_ok=True)
    with (PREPARED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "manage.py", "shell", "--no-imports", "--command", PREPARE]
        subprocess.run(command, cwd=ROOT, env=environment(PREPARED), check=True)


def static_files_in(folder: Path) -> None:
    _prepare()
    shutil.copytree(PREPARED / "static", folder / "static", dirs_exist_ok=True)


def prepared_in(folder: Path) -> None:
    """Copy the prepared files into a data folder, which saves seconds of each start."""
    static_files_in(folder)
    shutil.copytree(PREPARED / "locale", folder / "locale", dirs_exist_ok=True)


@contextmanager
def running_stack(folder: Path, *, durable: bool = False, **env: str) -> Iterator[Stack]:
    """Run the migrated database, without other processes so far. ``env`` is for every process."""
    folder.chmod(0o755)
    lend_to(folder)
    database = EmbeddedPostgres(folder, durable=durable)
    database.initialise()
    database.start()
    stack = Stack(folder, environment(folder, **env), database)
    try:
        static_files_in(folder)
        yield stack
    finally:
        stack.stop()
        database.stop()
