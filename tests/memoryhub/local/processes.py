"""Helpers that wait for processes and inspect them."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

PATIENCE_SECONDS = 120.0


def wait_until(condition: Callable[[], object], what: str, *, pause: float = 0.05) -> None:
    """Wait until the condition holds, with a long timeout for busy machines, checking every ``pause`` seconds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(pause)


def is_running(process: psutil.Process) -> bool:
    """Return whether the process runs; one that only waits to be reaped does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def running(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if is_running(process)]


def named_in_command(folder: Path) -> list[psutil.Process]:
    """Return the processes with the folder on their command line."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()) and is_running(process):
            found.append(process)
    return found
