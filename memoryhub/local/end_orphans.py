"""The supervisor's watchdog: a small process that ends all services if the supervisor is killed.

The supervisor starts it by path (`python -I -S end_orphans.py …`, which imports nothing of the project and takes 9 MB)
and writes a line for each child that starts or ends. If the pipe closes without the farewell line, the supervisor is
dead. The watchdog then ends the children's process groups, the database last. A parent death signal would not be
enough: it reaches only children, and a background worker is a grandchild.
"""

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
    """Parse the supervisor's lines. Return its running process groups and whether the farewell was among the lines.

    Each group has (stop signal, stops last). A line is `+ GROUP SIGNAL LAST .` (LAST is 0 or 1), `- GROUP .`, or the
    farewell. An incomplete line is ignored.
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
    """Return the line that reports a new child. The final dot shows that the line is complete."""
    return f"+ {group} {int(stop_signal)} {int(last)} .\n"


def ended(group: int) -> str:
    """Return the line that reports a child's end."""
    return f"- {group} .\n"


def _states(groups: Iterable[int]) -> dict[int, bool]:
    """Return the running process groups, and whether the leader of each is running. Zombies do not count."""
    states: dict[int, bool] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, _parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) in groups and state not in "ZX":
                    states[int(group)] = states.get(int(group), False) or entry.name == group
    return states


def end_groups(groups: Mapping[int, int], seconds: float) -> None:
    """Send each group's leader its signal (0 for none), wait up to ``seconds``, and kill the remaining processes.

    A group without a leader is killed at once, because nothing else could stop it properly.
    """
    end = time.monotonic() + seconds
    for group, leads in _states(groups.keys()).items():
        if leads:
            _send(os.kill, group, groups[group])
    while left := _states(groups.keys()):
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
        # They have already received their parent death signal.
        end_groups({group: 0 for group, (_, last) in children.items() if not last}, GRACE_SECONDS)
        end_groups({group: sig for group, (sig, last) in children.items() if last}, DATABASE_SECONDS)
        for path in map(Path, to_remove):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
