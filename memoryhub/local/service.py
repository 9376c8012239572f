"""One child of the supervisor: how it is started, watched, logged and stopped."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOG_BYTES = 5_000_000
LOG_COPIES = 2
COMPLAINT_SECONDS = 60.0
NAME_WIDTH = 9
_console = threading.Lock()


def say(name: str, text: str) -> None:
    """One line on the console, after the name of the child it comes from, if any. A closed console is no error."""
    with _console, contextlib.suppress(OSError, ValueError):
        print(f"{name:<{NAME_WIDTH}} | {text}" if name else text, flush=True)  # noqa: T201


class LogFile(logging.handlers.RotatingFileHandler):
    """A service's log, in a file of limited size. Failures to write it are reported once a minute."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=LOG_BYTES, backupCount=LOG_COPIES, encoding="utf-8", errors="replace", delay=True
        )
        self._stamped, self._whole = logging.Formatter("%(asctime)s %(message)s"), logging.Formatter()
        self._complain_at = 0.0

    def write(self, line: str, *, is_json: bool) -> None:
        self.setFormatter(self._whole if is_json else self._stamped)
        self.handle(logging.LogRecord("", logging.INFO, "", 0, "%s", (line,), None))

    def handleError(self, record: logging.LogRecord) -> None:
        if time.monotonic() >= self._complain_at:
            self._complain_at = time.monotonic() + COMPLAINT_SECONDS
            error = sys.exc_info()[1]
            why = getattr(error, "strerror", None) or error
            say("memoryhub", f"{self.baseFilename} cannot be written: {why}")
        if self.stream is not None:
            with contextlib.suppress(OSError):
                self.stream.close()
            self.stream = None  # opened again for the next line

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what it still holds finds no room either
            super().close()


@dataclass(frozen=True)
class Service:
    """What to run. Everything that can change between two starts is a function."""

    name: str
    command: Callable[[], Sequence[str]]  # called in the supervisor's process just before each start
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = Path("/")
    is_ready: Callable[[], bool] = lambda: True  # quick; asked again and again until it is true
    before_start: Callable[[], None] = lambda: None
    when_ready: Callable[[], None] = lambda: None
    ailment: Callable[[int], str | None] = lambda pid: (
        None
    )  # quick; why the running process must be restarted
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 5.0
    stops_last: bool = False
    keep_open: Sequence[int] = ()  # file descriptors it inherits


class Child:
    """A service's process, in a process group of its own. Used from the supervisor's main thread only."""

    def __init__(self, service: Service, logs: Path) -> None:
        self.service = service
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.failures = 0
        # On the monotonic clock:
        self.started = 0.0
        self.next_start = 0.0
        self.kill_at: float | None = None  # it was asked to stop, and has until then
        self._log = LogFile(logs / f"{service.name}.log")
        self._pump: threading.Thread | None = None

    def start(self) -> int:
        """Start the process and return its id, which is its group's too."""
        self.service.before_start()
        self.ready = False
        self.kill_at = None
        self.started = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603  (our own programs and arguments)
            list(self.service.command()),
            env=dict(self.service.environment),
            cwd=self.service.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self.service.keep_open,
        )
        self._pump = threading.Thread(target=self._copy_output, args=[self.process], daemon=True)
        self._pump.start()
        return self.process.pid

    def _copy_output(self, process: subprocess.Popen[bytes]) -> None:
        """Every line to the console and to the log file, until all who can write to it are gone."""
        with contextlib.closing(self._log), process.stdout or contextlib.nullcontext() as output:
            for raw in output or ():
                line = raw.decode("utf-8", "replace").rstrip()
                is_json = line.startswith('{"')  # says for itself when and where; a program reads it
                say("" if is_json else self.service.name, line)
                self._log.write(line, is_json=is_json)

    def exit_status(self) -> int | None:
        """The status of a process that has ended, None while it runs. What is left of its group is killed.

        The group dies before its leader is reaped, since only then can the group's number not be reused.
        """
        process = self.process
        if process is None:
            return None
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self.kill()
        return process.wait()

    def forget(self) -> None:
        """The process has ended: nothing of it is held any more."""
        self.process = None
        self.ready = False
        if self._pump is not None:
            self._pump.join(1)

    def ask_to_stop(self) -> None:
        """Send the stop signal, once, to the process alone: it ends its own children better than we could.

        Once, because django-q2's handler of SIGTERM locks up when a second one interrupts it.
        """
        if self.process is not None and self.kill_at is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, self.service.stop_signal)
            self.kill_at = time.monotonic() + self.service.stop_seconds

    def kill(self) -> None:
        """Kill the whole process group, if there still is one."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def describe_exit(status: int) -> str:
    """In words: a negative status is the signal that ended the process."""
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def start_watchdog(lock_file: Path, *remove: Path) -> subprocess.Popen[str]:
    """Start the process that cleans up if this one is killed. It reads from its `stdin` (see watchdog.py)."""
    script = Path(__file__).with_name("watchdog.py")
    return subprocess.Popen(  # noqa: S603  (our own script and arguments)
        [sys.executable, "-I", "-S", str(script), str(lock_file), *map(str, remove)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
        bufsize=1,
    )
