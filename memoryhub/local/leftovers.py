"""What a Postgres that was not stopped in order leaves behind: itself, its orphans, its lock files."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

SERVER_SECONDS = 10.0
ORPHAN_SECONDS = 1.0


def end_leftovers(cluster: Path, locks: Iterable[Path]) -> None:
    """End a server of `cluster` that is still alive, then its orphans, which hold its memory, and remove its locks.

    A lock file that stayed would be believed once its process number belongs to another process of this user.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        servers = [process for process in _processes(cluster) if str(cluster) in _command(process)]
        if _end(servers, number):
            break
    # Orphans notice the loss by themselves, unless they are in the middle of a long query.
    _wait_for_end(_processes(cluster), ORPHAN_SECONDS)
    if _end(_processes(cluster), signal.SIGKILL):
        for lock in locks:
            lock.unlink(missing_ok=True)


def _processes(cluster: Path) -> list[psutil.Process]:
    """All that Postgres runs for a cluster works inside its folder; only the server has it on its command line."""
    return [process for process in psutil.process_iter() if _works_in(process, cluster)]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.name() == "postgres" and Path(process.cwd()) == folder.resolve()
    except (psutil.Error, OSError):
        return False


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []  # it has just ended


def _end(processes: list[psutil.Process], number: signal.Signals) -> bool:
    """Send a signal and wait. True if none of them runs any more."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    return _wait_for_end(processes, SERVER_SECONDS)


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> bool:
    """Whether all of them ended in time; one that only waits to be reaped has ended."""
    end = time.monotonic() + seconds
    while any(map(_runs, processes)):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
