"""One supervisor a data folder: a lock that the kernel lets go of when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO


class AlreadyRunning(Exception):
    """Another supervisor works on this data folder; the text says which."""


class RunLock:
    """Held as long as this object lives and is not released. The lock's file says who holds it."""

    def __init__(self, data_dir: Path, address: str) -> None:
        self.data_dir = data_dir
        self.path = data_dir / "run" / "supervisor.lock"
        self.address = address
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock, or raise AlreadyRunning."""
        file = self.path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with file:
                file.seek(0)
                raise AlreadyRunning(self._describe(file.read())) from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "address": self.address}, file)
        file.flush()
        self._file = file

    def _describe(self, text: str) -> str:
        try:
            holder = json.loads(text)
            who, stop = f"process {holder['pid']}, {holder['address']}", f"kill {holder['pid']}"
        except (ValueError, KeyError):  # it has the lock and is about to write who it is
            who, stop = "starting this moment", "Ctrl-C in its window"
        return f"MemoryHub is already running on {self.data_dir} ({who}). Stop it with: {stop}"

    def release(self) -> None:
        """Let the next one start."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


def wait_for_cleaner(data_dir: Path, seconds: float) -> bool:
    """Wait until the watchdog of a killed supervisor has cleaned up after it. False if it takes longer."""
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
    """Locked by the watchdog for as long as it lives."""
    return data_dir / "run" / "watchdog.lock"
