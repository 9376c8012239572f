"""The data folder, and the lock that a supervisor holds on it."""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataFolderError(Exception):
    """Raised when the data folder cannot be used. The message names the setting to change."""


def make_data_folders(data_dir: Path, *, passable: bool = False) -> None:
    """Create the data folder, `run/` and `logs/`, accessible to this user only. Raises DataFolderError if not writable.

    `passable` lets other users enter the data folder and `run/`, but not list them. Started as root, MemoryHub runs
    Postgres as another user.
    """
    try:
        for folder in (data_dir, data_dir / "run", data_dir / "logs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if passable and folder.name != "logs":
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)
        probe = data_dir / "run" / "writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataFolderError(
            f"Cannot write in {error.filename or data_dir} ({error.strerror}): set MEMORYHUB_DATA_DIR to a "
            "folder that this user may write."
        ) from error


def write_file(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner, and create its folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


class AlreadyRunning(Exception):
    """Raised when another supervisor uses this data folder. The message says which process."""


@contextmanager
def run_lock(data_dir: Path, address: str) -> Iterator[None]:
    """Lock the data folder inside the block, for a process with this address. Raises AlreadyRunning if it is locked."""
    with (data_dir / "run" / "supervisor.lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            try:
                other = json.load(file)
                who, stop = f"process {other['pid']}, {other['address']}", f"kill {other['pid']}"
            except (ValueError, KeyError):  # the other process has not written its id yet
                who, stop = "starting this moment", "Ctrl-C in its window"
            raise AlreadyRunning(
                f"MemoryHub is already running on {data_dir} ({who}). Stop it with: {stop}"
            ) from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "address": address}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def wait_for_cleaner(data_dir: Path, seconds: float) -> bool:
    """Wait until the watchdog of a killed supervisor has finished its cleanup. Return False after ``seconds``."""
    end = time.monotonic() + seconds
    with cleaner_lock_file(data_dir).open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.monotonic() > end:
                    return False
                time.sleep(0.1)


def cleaner_lock_file(data_dir: Path) -> Path:
    """Return the file that the watchdog locks while it runs."""
    return data_dir / "run" / "watchdog.lock"
