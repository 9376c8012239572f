"""Parts on separate hosts: each with a data folder that the other cannot access, and one database."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import httpx2 as http
import psycopg
import pytest
from django.core.management import CommandError, call_command

from memoryhub.local.postgres import connection_settings
from tests.fakes import object_store
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment
from tests.stack import ROOT, Web, free_port, prepared_in, running_stack, signed_up

TOKEN = "of the monitoring alone"
KEYS = {"MEMORYHUB_SECRET_KEY": "of every host " * 3, "MEMORYHUB_FORGET_KEY": "of every host, too " * 3}
NEXT = """from django.db import migrations
class Migration(migrations.Migration):
    older_may_run = {mild}
    dependencies = [("workspaces", "{last}")]
    operations = [
        migrations.RunSQL("SELECT pg_advisory_xact_lock({number})"),
        migrations.RunSQL("ALTER TABLE workspaces_workspace ADD COLUMN of_{number} text NOT NULL DEFAULT ''"),
    ]
"""


def next_version(folder: Path, *milds: bool) -> Path:
    """Copy this checkout with further migrations, each of which adds a column after taking an advisory lock."""
    parts = ("manage.py", "chat", "memories", "memoryhub", "workspaces", "static", "templates")
    files = subprocess.check_output(["git", "ls-files", "-z", "--", *parts], cwd=ROOT, text=True)
    for name in filter(None, files.split("\0")):
        compiled = (
            [cache_from_source(name)] if name.endswith(".py") else []
        )  # otherwise each process compiles it again
        for each in (name, *filter(lambda path: (ROOT / path).exists(), compiled)):
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / each, folder / each)
    known = folder / "workspaces" / "migrations"
    for number, mild in enumerate(milds, start=9001):
        last = max(path.stem for path in known.glob("[0-9]*.py"))
        (known / f"{number}_next.py").write_text(NEXT.format(mild=mild, last=last, number=number))
    return folder


@dataclass
class Host:
    """`up --only` in a data folder of its own, with its output in a file."""

    web: Web
    said: Path

    def wait(self) -> None:
        wait_until(self._is_ready, "the host is ready")

    def _is_ready(self) -> bool:
        assert self.web.process.poll() is None, self.said.read_text()[-3000:]
        return "MemoryHub is ready" in self.said.read_text()

    def end(self) -> None:
        """Stop it as a service manager does; harmless if it has stopped."""
        self.web.process.send_signal(signal.SIGTERM)
        assert self.web.process.wait(60) == 0
        assert self.said.read_text().splitlines()[-1].endswith("| stopped")

    def as_there(self, person: http.Client) -> http.Client:
        """Return a client with the same session at this host."""
        return http.Client(base_url=self.web.url, cookies=person.cookies, headers=person.headers)


@dataclass
class Hub:
    """The environment and the version of all hosts."""

    folder: Path
    bucket: Any
    env: dict[str, str]
    code: Path

    @contextmanager
    def begin(self, name: str, parts: str, code: Path | None = None, **env: str) -> Iterator[Host]:
        port = free_port()
        own = {"MEMORYHUB_PORT": str(port), "MEMORYHUB_WEB_PROCESSES": "1", **env}
        process = self.start(name, code or self.code, "up", "--only", parts, **own)
        host = Host(Web(port, process), self.folder / name / "said")
        try:
            yield host
            host.end()
        finally:
            process.kill()
            process.wait()

    def start(self, name: str, code: Path, *command: str, **env: str) -> subprocess.Popen[bytes]:
        folder = self.folder / name
        prepared_in(folder / "data")
        env = environment(folder / "data", **self.env | env)
        with (folder / "said").open("wb") as said:
            words = [sys.executable, "manage.py", *command]
            return subprocess.Popen(words, cwd=code, env=env, stdout=said, stderr=said)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedOpenAI]:
    server = ScriptedOpenAI().start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedOpenAI) -> Iterator[Hub]:
    """A database migrated to this version, and hosts of the next."""
    folder: Path = tmp_path_factory.mktemp("hub")
    with running_stack(folder) as stack, object_store.running_store() as address:
        store = {"BUCKET": "files", "ENDPOINT_URL": address, "REGION": "us-east-1"}
        store |= {"ACCESS_KEY": object_store.KEY, "SECRET_KEY": object_store.SECRET}
        place = "postgres://{user}@/{dbname}?host={host}&port={port}".format(**connection_settings(folder))
        env = {f"MEMORYHUB_S3_{name}": value for name, value in store.items()}
        env |= {"DATABASE_URL": place, "MEMORYHUB_EMBEDDING_MODEL": "none", **KEYS}
        env |= {"MEMORYHUB_LLM_BASE_URL": model.base_url, "MEMORYHUB_LLM_API_KEY": model.api_key}
        env |= {"MEMORYHUB_LLM_MODEL": model.model, "MEMORYHUB_METRICS_TOKEN": TOKEN}
        bucket = object_store.empty_bucket(address, "files")
        yield Hub(stack.folder, bucket, env, next_version(folder / "next", True))


@pytest.fixture(scope="module")
def both(hub: Hub) -> Iterator[tuple[Host, Host]]:
    """Start a web host and a worker host at once, while a lock delays the database's migration."""
    with psycopg.connect(hub.env["DATABASE_URL"]) as nobody_adds:
        nobody_adds.execute("SELECT pg_advisory_lock(9001)")
        with hub.begin("front", "web") as front, hub.begin("back", "worker") as back:
            wait_until(lambda: "Another host" in front.said.read_text() + back.said.read_text(), "one waits")
            nobody_adds.close()
            front.wait()
            back.wait()
            yield front, back


@pytest.fixture(scope="module")
def person(both: tuple[Host, Host]) -> http.Client:
    return signed_up(both[0].web, "olga")


@pytest.fixture(scope="module")
def place(person: http.Client) -> str:
    return f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"


def test_two_hosts_begin_at_once_and_one_does_what_the_other_was_asked(
    both: tuple[Host, Host], person: http.Client, place: str, hub: Hub, model: ScriptedOpenAI
) -> None:
    """Files are in an object store: neither host sees the other's folder. The worker's host reports its health, too."""
    front, back = both
    steps = re.findall("1 steps", front.said.read_text() + back.said.read_text())
    assert len(steps) == 1, "one host brought the database up to date, the other found it done"
    upload_document(person, place, "bins.txt")
    assert len(object_store.keys_in(hub.bucket, "files")) == 1
    assert not {each.name for each in hub.folder.glob("*/data/*")} & {"assets", "documents"}
    send_fact(person, model, "The vault opens at nine")
    wait_until(
        lambda: "at nine" in person.get(f"{place}/memories").text, "it noticed what was said", pause=0.3
    )
    assert_worker_healthy(back)


def test_a_version_that_only_adds_runs_beside_the_one_before_and_there_is_a_way_back(
    both: tuple[Host, Host], person: http.Client, place: str, hub: Hub, model: ScriptedOpenAI
) -> None:
    """Web and worker of both versions run at once and do each other's work, without failed or lost writes. The new one
    reads the shared key from a file.
    """
    newer, (old, old_worker), kept = next_version(hub.folder / "newer", True, True), both, list[str]()
    key_file = hub.folder / "secret"
    key_file.write_text(KEYS["MEMORYHUB_SECRET_KEY"] + "\n")
    of_file = {"MEMORYHUB_SECRET_KEY": "", "MEMORYHUB_SECRET_KEY_FILE": str(key_file)}
    with hub.begin("new", "web", newer, **of_file) as new:
        with writing(person, f"{place}/memories", kept):
            new.wait()
        assert "1 steps" in new.said.read_text()
        assert http.get(f"{old.web.url}/readyz").json()["parts"]["migrations"] == {"ok": True, "why": ""}
        anew, of_workspace = new.as_there(person), {"workspace_id": place.rpartition("/")[2]}
        file = {"file": ("plan.txt", b"North wall")}
        added = person.post(f"/api/v1/memories/{kept[0]}/assets", params=of_workspace, files=file).json()
        assert anew.get(f"/api/v1/assets/{added['id']}", params=of_workspace).content == b"North wall"
        upload_document(anew, place, "rooms.txt")
        old_worker.end()
        wait_until(
            lambda: "none is running" in http.get(f"{old.web.url}/readyz").text, "the worker is missed"
        )

        send_fact(person, model, "The project deadline is March 15")
        worker = hub.start("newer-worker", newer, "qcluster")
        try:
            noticed = "The project deadline is March 15"
            wait_until(lambda: noticed in person.get(f"{place}/memories").text, "it noticed it", pause=0.3)
            upload_document(person, place, "walls.txt")
        finally:
            worker.terminate()
            worker.wait(60)

        with hub.begin("again", "web,worker") as again:
            with writing(anew, f"{place}/memories", kept):
                old.end()
                again.wait()
            new.end()
            last = again.as_there(person)
            upload_document(last, place, "keys.txt")
            assert len(kept) > 10
            assert all(last.get(f"{place}/memories/{each}").status_code == 200 for each in kept)


def send_fact(person: http.Client, model: ScriptedOpenAI, fact: str) -> None:
    """Send a message from which a worker extracts this fact."""
    model.script(Answer("Noted."), Answer(json.dumps([{"text": fact, "kind": "fact", "importance": 0.6}])))
    chat = person.post("/chat/api/chats", json={"memory_enabled": True}).json()["id"]
    said = {"content": f"{fact}.", "stream": False}
    assert person.post(f"/chat/api/{chat}/messages", json=said).status_code == 201


def assert_worker_healthy(worker: Host) -> None:
    """Check the health endpoints of a worker's host, which has no web server."""
    at = worker.web.url
    assert http.get(f"{at}/healthz").json() == {"status": "ok"}
    parts = http.get(f"{at}/readyz").json()["parts"]
    assert parts["worker"] == parts["migrations"] == {"ok": True, "why": ""}
    assert "embedder" not in parts, "it would load one to be asked"
    told = http.get(f"{at}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert 'memoryhub_memories_saved_total{source="auto_chat"} 1.0' in told
    assert http.get(f"{at}/metrics").status_code == 401
    assert http.get(f"{at}/accounts/login/").status_code == 404
    assert http.post(f"{at}/healthz", content=b"x").status_code == 413


def upload_document(person: http.Client, place: str, name: str) -> None:
    """Upload a document and wait until a worker has read it."""
    file = {"file": (name, f"The {name} go out on Monday.".encode())}
    brought = person.post(f"{place}/documents", files=file).json()
    wait_until(
        lambda: person.get(f"{place}/documents/{brought['id']}").json()["status"] == "ready",
        f"{name} is read",
        pause=0.3,
    )


def test_a_version_that_changes_more_is_not_served_by_the_one_before(hub: Hub) -> None:
    newer = next_version(hub.folder / "changed", True, True, False)
    env = environment(hub.folder / "migrating", **hub.env)
    for code, fails in ((newer, False), (ROOT, True)):
        done = subprocess.run(
            [sys.executable, "manage.py", "migrate"], cwd=code, env=env, capture_output=True, text=True
        )
        assert bool(done.returncode) is fails, done.stderr
    assert "newer MemoryHub than this one: it has workspaces 9003_next, which" in done.stderr


@contextmanager
def writing(person: http.Client, memories: str, kept: list[str]) -> Iterator[None]:
    """Save one memory after the other during the block; each save must succeed."""
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            saved = person.post(memories, json={"content": f"Locker {len(kept)} is free."})
            assert saved.status_code == 201, saved.text
            kept.append(saved.json()["id"])
            over.wait(0.25)  # leaves CPU time to the processes that start

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            yield
        finally:
            over.set()
        writer.result(60)


@pytest.mark.parametrize(
    ("parts", "given", "named"),
    [
        ("web", {"EMBEDDED_DATABASE": True, "KEYS_ARE_GIVEN": True}, "set DATABASE_URL"),
        ("worker,web", {"EMBEDDED_DATABASE": False, "KEYS_ARE_GIVEN": False}, "MEMORYHUB_SECRET_KEY"),
        ("model", {"LLM_API_KEY": ""}, "MEMORYHUB_LLM_API_KEY"),
        ("embedder", {"EMBEDDING_API_KEY": ""}, "MEMORYHUB_EMBEDDING_API_KEY"),
        ("web,embedder", {}, "--only embedder"),
        ("web,kitchen", {}, "no such part: kitchen; there are model, worker, web, embedder"),
    ],
)
def test_what_a_host_was_not_told_is_said_before_anything_starts(
    settings: Any, parts: str, given: dict[str, object], named: str
) -> None:
    for name, value in given.items():
        setattr(settings, name, value)
    with pytest.raises(CommandError, match=named):
        call_command("up", f"--only={parts}")
