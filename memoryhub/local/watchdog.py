"""Watchdog of the supervisor: a small process that ends all others if the supervisor is killed.

The supervisor starts it by path (`python -I -S watchdog.py …`, nothing of the project is imported, 9 MB) and
writes one line for each child it starts or reaps. When the pipe closes without a farewell the supervisor is
dead, and the children's process groups are ended: the rest first, the database last. A death signal alone
would not do: it reaches children only, and a background worker is a grandchild.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

GRACE_SECONDS = 4.0
DATABASE_SECONDS = 15.0
KILL_SECONDS = 5.0
FAREWELL = "farewell"


def read_children(lines: list[str]) -> tuple[dict[int, tuple[int, bool]], bool]:
    """Parse the supervisor's lines into process groups with (stop signal, goes last), and whether it said farewell.

    A line is `+ GROUP SIGNAL LAST` (LAST is 0 or 1), `- GROUP`, or the farewell. A line cut off is ignored.
    """
    children: dict[int, tuple[int, bool]] = {}
    for line in lines:
        match line.split():
            case ["+", group, stop_signal, last, "."]:
                children[int(group)] = (int(stop_signal), last == "1")
            case ["-", group, "."]:
                children.pop(int(group), None)
            case [word] if word == FAREWELL:
                return {}, True
    return children, False


def started(group: int, stop_signal: int, last: bool) -> str:
    """Return the line that reports a new child. The dot proves that the line is complete."""
    return f"+ {group} {int(stop_signal)} {int(last)} .\n"


def ended(group: int) -> str:
    """Return the line that reports that a child has gone."""
    return f"- {group} .\n"


def _states(groups: Iterable[int]) -> dict[int, bool]:
    """Return the process groups that still run, and whether their leader does. Zombies do not count."""
    found: dict[int, bool] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, _parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) in groups and state not in "ZX":
                    found[int(group)] = found.get(int(group), False) or entry.name == group
    return found


def _states_elsewhere(groups: Iterable[int]) -> dict[int, bool]:
    """As ``_states``, without /proc."""
    found: dict[int, bool] = {}
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, 0)
            found[group] = True
    return found


def end_groups(groups: Mapping[int, int], seconds: float) -> None:
    """Send the leader of each group its signal (0 for none), wait, and kill what is left of the groups.

    A group whose leader is gone has nobody left to end it in order: it is killed at once.
    """
    states = _states if sys.platform.startswith("linux") else _states_elsewhere
    end = time.monotonic() + seconds
    for group, leads in states(groups.keys()).items():
        if leads:
            _send(os.kill, group, groups[group])
    while left := states(groups.keys()):
        late = time.monotonic() > end
        for group, leads in left.items():
            if late or not leads:
                _send(os.killpg, group, signal.SIGKILL)
        if time.monotonic() > end + KILL_SECONDS:
            return
        time.sleep(0.05)


def _send(how: Callable[[int, int], None], target: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(target, number)


def main() -> None:
    lock_path, *to_remove = sys.argv[1:]
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with Path(lock_path).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        children, farewell = read_children(list(sys.stdin))
        if farewell:
            return
        # On Linux they have received their death signal already.
        already_signalled = sys.platform.startswith("linux")
        end_groups(
            {group: 0 if already_signalled else sig for group, (sig, last) in children.items() if not last},
            GRACE_SECONDS,
        )
        end_groups({group: sig for group, (sig, last) in children.items() if last}, DATABASE_SECONDS)
        for path in map(Path, to_remove):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
