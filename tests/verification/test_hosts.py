"""Parts on their own: two hosts, each with a data folder that the other never sees, and one database."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import httpx2 as http
import pytest
from django.core.management import CommandError, call_command

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from tests.fakes import object_store
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment, lend_to
from tests.stack import ROOT, Web, free_port, prepared_in, signed_up

SAID = "The vault opens at nine."
KEYS = {"MEMORYHUB_SECRET_KEY": "of every host " * 3, "MEMORYHUB_FORGET_KEY": "of every host, too " * 3}


@contextmanager
def host(folder: Path, parts: str, env: dict[str, str], code: Path = ROOT) -> Iterator[tuple[Web, Path]]:
    """`up --only` of this checkout in a data folder of its own; what it says goes to the file."""
    folder.mkdir()
    prepared_in(folder / "data")
    said, port = folder / "said", free_port()
    own = environment(folder / "data", **env) | {"MEMORYHUB_PORT": str(port), "MEMORYHUB_WEB_PROCESSES": "1"}
    with said.open("wb") as output:
        command = [sys.executable, "manage.py", "up", "--only", parts]
        process = subprocess.Popen(command, cwd=code, env=own, stdout=output, stderr=output)
    try:
        yield Web(port, process), said
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    with served(tmp_path) as address:
        yield address


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[str]:
    """The address of a database that this version has brought up to date."""
    (tmp_path / "database").mkdir()
    lend_to(tmp_path / "database")
    with served(tmp_path) as address:
        yield address


@contextmanager
def served(tmp_path: Path) -> Iterator[str]:
    tmp_path.chmod(0o755)
    server = EmbeddedPostgres(tmp_path / "database", durable=False)
    server.initialise()
    server.start()
    server.create_database()
    place = connection_settings(tmp_path / "database")
    yield "postgres://{user}@/{dbname}?host={host}&port={port}".format(**place)
    server.stop()


def test_two_hosts_begin_at_once_and_one_does_what_the_other_was_asked(database: str, tmp_path: Path) -> None:
    """Files lie in a store: neither sees a folder of the other."""
    key_file = tmp_path / "secret"
    key_file.write_text(KEYS["MEMORYHUB_SECRET_KEY"] + "\n")
    with ExitStack() as hosts:
        address = hosts.enter_context(object_store.running_store())
        bucket = object_store.empty_bucket(address, "files")
        store = {"BUCKET": "files", "ENDPOINT_URL": address, "REGION": "us-east-1"}
        store |= {"ACCESS_KEY": object_store.KEY, "SECRET_KEY": object_store.SECRET}
        env = {"DATABASE_URL": database, **KEYS} | {f"MEMORYHUB_S3_{name}": store[name] for name in store}
        from_file = {name: value for name, value in env.items() if name != "MEMORYHUB_SECRET_KEY"}
        front, of_front = hosts.enter_context(host(tmp_path / "front", "web", env))
        secret = {"MEMORYHUB_SECRET_KEY_FILE": str(key_file)}
        back, of_back = hosts.enter_context(host(tmp_path / "back", "web,worker", from_file | secret))
        for web, said in ((front, of_front), (back, of_back)):
            wait_until(lambda: _is_ready(web, said), "the host is ready")  # noqa: B023  (waited for at once)
        steps = [int(n) for n in re.findall(r"(\d+) steps", of_front.read_text() + of_back.read_text())]
        assert len(steps) == 1, "one host brought the empty database up to date, the other found it done"

        person = signed_up(front, "olga")
        workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
        memories = f"/chat/api/workspaces/{workspace}/memories"
        saved = person.post(memories, json={"content": SAID})
        assert saved.status_code == 201, saved.text
        elsewhere = http.Client(base_url=back.url, cookies=person.cookies, headers=person.headers)
        assert elsewhere.get(f"{memories}/{saved.json()['id']}").json()["content"] == SAID
        files = f"/api/v1/memories/{saved.json()['id']}/assets"
        of_workspace = {"workspace_id": workspace}
        added = person.post(files, params=of_workspace, files={"file": ("plan.txt", b"North wall")}).json()
        assert elsewhere.get(f"/api/v1/assets/{added['id']}", params=of_workspace).content == b"North wall"
        brought = person.post(
            f"/chat/api/workspaces/{workspace}/documents",
            files={"file": ("bins.txt", b"The bins go out on Monday.")},
        )
        document = f"/chat/api/workspaces/{workspace}/documents/{brought.json()['id']}"
        wait_until(
            lambda: person.get(document).json()["status"] == "ready", "the other host's worker read it"
        )
        assert len(object_store.keys_in(bucket, "files")) == 2
        assert not {each.name for each in tmp_path.glob("*/data/*")} & {"assets", "documents"}
        back.process.send_signal(signal.SIGTERM)
        back.process.wait(60)
        assert person.get(f"{memories}/{saved.json()['id']}").status_code == 200
        wait_until(lambda: "none is running" in http.get(f"{front.url}/readyz").text, "the worker is missed")


NEXT = """from django.db import migrations
class Migration(migrations.Migration):
    older_may_run = {mild}
    dependencies = [("workspaces", "{last}")]
    operations = [migrations.RunSQL("ALTER TABLE workspaces_workspace ADD COLUMN of_{number} text NOT NULL DEFAULT ''")]
"""


def next_version(folder: Path, *, mild: bool) -> Path:
    """This checkout and one migration more, which adds a column."""
    parts = ("manage.py", "chat", "memories", "memoryhub", "workspaces", "static", "templates")
    files = subprocess.check_output(["git", "ls-files", "-z", "--", *parts], cwd=ROOT, text=True)
    for name in filter(None, files.split("\0")):
        compiled = (
            [cache_from_source(name)] if name.endswith(".py") else []
        )  # else each process compiles it anew
        for each in (name, *filter(lambda path: (ROOT / path).exists(), compiled)):
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / each, folder / each)
    known = folder / "workspaces" / "migrations"
    last = max(path.stem for path in known.glob("[0-9]*.py"))
    (known / "9001_next.py").write_text(NEXT.format(mild=mild, last=last, number=9001))
    return folder


def test_a_version_that_only_adds_runs_beside_the_one_before_and_there_is_a_way_back(
    migrated: str, tmp_path: Path
) -> None:
    """Web and worker of either version at once; whoever writes meanwhile is answered, and what is answered is kept."""
    env = {"DATABASE_URL": migrated, "MEMORYHUB_FILES_DIR": str(tmp_path / "files"), **KEYS}
    newer = next_version(tmp_path / "newer", mild=True)
    with ExitStack() as hosts:
        old, of_old = hosts.enter_context(host(tmp_path / "old", "web,worker", env))
        wait_until(lambda: _is_ready(old, of_old), "the version before is ready")
        person = signed_up(old, "olga")
        workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
        memories, documents = (
            f"/chat/api/workspaces/{workspace}/{kind}" for kind in ("memories", "documents")
        )
        kept: list[str] = []
        with writing(person, memories, kept):
            new, of_new = hosts.enter_context(host(tmp_path / "new", "web", env, newer))
            wait_until(lambda: _is_ready(new, of_new), "the next version is ready")
        assert "1 steps" in of_new.read_text()
        assert http.get(f"{old.url}/readyz").json()["parts"]["migrations"] == {"ok": True, "why": ""}
        anew = http.Client(base_url=new.url, cookies=person.cookies, headers=person.headers)
        brought = anew.post(documents, files={"file": ("bins.txt", b"The bins go out on Monday.")}).json()
        document = f"{documents}/{brought['id']}"
        wait_until(lambda: anew.get(document).json()["status"] == "ready", "the worker of before read it")

        back, of_back = hosts.enter_context(host(tmp_path / "back", "web", env))
        with writing(anew, memories, kept):
            old.process.send_signal(signal.SIGTERM)
            old.process.wait(60)
            wait_until(lambda: _is_ready(back, of_back), "the version before begins again")
        new.process.send_signal(signal.SIGTERM)
        new.process.wait(60)
        last = http.Client(base_url=back.url, cookies=person.cookies, headers=person.headers)
        assert len(kept) > 10
        assert all(last.get(f"{memories}/{each}").status_code == 200 for each in kept)


def test_its_worker_does_what_the_web_of_before_asks_and_the_one_before_goes_on(
    migrated: str, tmp_path: Path, scripted_model: ScriptedOpenAI
) -> None:
    """Reads what is brought and notices what is said; and is asked how it is, having no web server of its own."""
    env = {"DATABASE_URL": migrated, "MEMORYHUB_FILES_DIR": str(tmp_path / "files"), **KEYS}
    env |= {
        "MEMORYHUB_LLM_BASE_URL": scripted_model.base_url,
        "MEMORYHUB_LLM_API_KEY": scripted_model.api_key,
    }
    env |= {"MEMORYHUB_LLM_MODEL": scripted_model.model, "MEMORYHUB_METRICS_TOKEN": "of the monitoring alone"}
    found = json.dumps([{"text": "The project deadline is March 15", "kind": "fact", "importance": 0.6}])
    scripted_model.script(Answer("Noted."), Answer(found))
    newer = next_version(tmp_path / "newer", mild=True)
    with ExitStack() as hosts:
        old, of_old = hosts.enter_context(host(tmp_path / "old", "web", env))
        wait_until(lambda: _is_ready(old, of_old), "the version before is ready")
        person = signed_up(old, "olga")
        place = f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"
        chat = person.post("/chat/api/chats", json={"memory_enabled": True}).json()["id"]
        said = {"content": "My project deadline is March 15.", "stream": False}
        assert person.post(f"/chat/api/{chat}/messages", json=said).status_code == 201

        new, of_new = hosts.enter_context(host(tmp_path / "new", "worker", env, newer))
        wait_until(lambda: _is_ready(new, of_new), "the next version's worker is ready")
        assert "1 steps" in of_new.read_text()
        _bring(person, place, "bins.txt")
        wait_until(lambda: "March 15" in person.get(f"{place}/memories").text, "it noticed what was said")
        assert http.get(f"{new.url}/healthz").json() == {"status": "ok"}
        parts = http.get(f"{new.url}/readyz").json()["parts"]
        assert parts["worker"] == parts["migrations"] == {"ok": True, "why": ""}
        assert "embedder" not in parts, "it would load one to be asked"
        told = http.get(
            f"{new.url}/metrics", headers={"Authorization": "Bearer of the monitoring alone"}
        ).text
        assert 'memoryhub_memories_saved_total{source="auto_chat"} 1.0' in told
        assert http.get(f"{new.url}/metrics").status_code == 401
        assert http.get(f"{new.url}/accounts/login/").status_code == 404
        assert http.post(f"{new.url}/healthz", content=b"x").status_code == 413

        new.process.send_signal(signal.SIGTERM)
        new.process.wait(60)
        back, of_back = hosts.enter_context(host(tmp_path / "back", "worker", env))
        wait_until(lambda: _is_ready(back, of_back), "the version before begins again")
        _bring(person, place, "keys.txt")


def _bring(person: http.Client, place: str, name: str) -> None:
    """A document, and wait until a worker has read it."""
    file = {"file": (name, f"The {name} go out on Monday.".encode())}
    brought = person.post(f"{place}/documents", files=file).json()
    wait_until(
        lambda: person.get(f"{place}/documents/{brought['id']}").json()["status"] == "ready",
        f"{name} is read",
    )


def test_a_version_that_changes_more_is_not_served_by_the_one_before(migrated: str, tmp_path: Path) -> None:
    newer = next_version(tmp_path / "newer", mild=False)
    env = environment(tmp_path / "data", DATABASE_URL=migrated, **KEYS)
    for code, fails in ((newer, False), (ROOT, True)):
        done = subprocess.run(
            [sys.executable, "manage.py", "migrate"], cwd=code, env=env, capture_output=True, text=True
        )
        assert bool(done.returncode) is fails, done.stderr
    assert "newer MemoryHub than this one: it has workspaces 9001_next" in done.stderr


@contextmanager
def writing(person: http.Client, memories: str, kept: list[str]) -> Iterator[None]:
    """Saves one memory after the other; each has to be taken."""
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            saved = person.post(memories, json={"content": f"Locker {len(kept)} is free."})
            assert saved.status_code == 201, saved.text
            kept.append(saved.json()["id"])
            over.wait(0.1)  # those who start meanwhile want the processor, too

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            yield
        finally:
            over.set()
        writer.result(60)


def _is_ready(web: Web, said: Path) -> bool:
    assert web.process.poll() is None, said.read_text()[-3000:]
    return "MemoryHub is ready" in said.read_text()


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
