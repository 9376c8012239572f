"""A supervisor of services, which restarts them and stops all of them when it ends.

A service that exits is restarted after a growing pause. At the end all services stop together; those with `stops_last`
(the database) stop after the others. If the supervisor itself is killed, the watchdog ends the services.
"""

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
from types import FrameType

from memoryhub.local.data_folder import cleaner_lock_file
from memoryhub.local.end_orphans import FAREWELL, ended, started

NAME = "memoryhub"
TICK_SECONDS = 0.05
HEALTH_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
GOOD_RUN_SECONDS = 30.0  # a run of this length resets the count of failures
START_ATTEMPTS = 4  # if a service fails this often before it is ready, the start fails
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartFailed(Exception):
    """Raised when a required service cannot be started. The message says which."""


class Stopping(Exception):
    """Raised when a stop is requested while a service starts."""


class Supervisor:
    """A context manager that runs services and stops them on exit.

    Use it only in the main thread: Linux signals the services when the thread that started them ends.
    """

    def __init__(self, data_dir: Path, *, remove_when_killed: Sequence[Path] = ()) -> None:
        self.data_dir = data_dir
        self.children: list[Child] = []
        self._remove_when_killed = remove_when_killed
        self._watchdog: subprocess.Popen[str] | None = None
        self._handlers_before: dict[signal.Signals, object] = {}
        self._stops_asked = 0
        self._next_health_check = 0.0

    def __enter__(self) -> Supervisor:
        for number in STOP_SIGNALS:
            self._handlers_before[number] = signal.signal(number, self._ask_to_stop)
        self._guard()
        return self

    def __exit__(self, *_error: object) -> None:
        if self.children:
            say(NAME, "stopping (once more to stop at once) …")
        for last in (False, True):
            self._stop([child for child in self.children if child.service.stops_last == last])
        self._notify_watchdog(FAREWELL + "\n")
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.close()
            self._watchdog.wait(5)
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops_asked += 1

    def add(self, service: Service) -> Child:
        """Start a service and keep it running, without waiting until it is ready."""
        child = Child(service, self.data_dir / "logs")
        self.children.append(child)
        self._start(child)
        return child

    def add_and_wait(self, service: Service) -> None:
        """Start a service and wait until it is ready. Raises StartFailed or, on a stop request, Stopping."""
        child = self.add(service)

        def ready() -> bool:
            if child.failures >= START_ATTEMPTS:
                log = self.data_dir / "logs" / f"{service.name}.log"
                raise StartFailed(f"{service.name} did not start: see {log}")
            return child.ready

        self._wait_for(ready)

    def run_once(self, service: Service) -> None:
        """Run a program until it exits. Raises StartFailed if it fails, Stopping on a stop request."""
        child = Child(service, self.data_dir / "logs")
        try:
            group = child.start()
        except OSError as error:
            raise StartFailed(f"{service.name} could not be started: {error}") from error
        self._report_start(child)
        try:
            self._wait_for(lambda: child.exit_status() is not None)
            status = child.exit_status()
        finally:
            child.kill()
            child.forget()
            self._notify_watchdog(ended(group))
        if status:
            raise StartFailed(f"{service.name} {describe_exit(status)}, so the start ends here")

    def run(self) -> None:
        """Keep all services running until a stop is requested."""
        with contextlib.suppress(Stopping):
            self._wait_for(lambda: False)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._stops_asked:
                raise Stopping
            self._tick()
            time.sleep(TICK_SECONDS)

    def _tick(self) -> None:
        now = time.monotonic()
        self._guard()
        for child in self.children:
            self._attend(child, now)
        if now >= self._next_health_check:
            self._next_health_check = now + HEALTH_SECONDS
            for child in self.children:
                self._check_health(child)

    def _attend(self, child: Child, now: float) -> None:
        if child.process is None:
            if now >= child.next_start:
                self._start(child)
            return
        status = child.exit_status()
        if status is not None:
            self._plan_restart(child, describe_exit(status), now)
        elif child.kill_at is not None and now >= child.kill_at:
            child.kill()
        elif not child.ready and child.kill_at is None and child.service.is_ready():
            with contextlib.suppress(OSError):  # a full disk: try again
                child.service.when_ready()
                child.ready = True

    def _start(self, child: Child) -> None:
        try:
            child.start()
        except OSError as error:
            self._plan_restart(child, f"could not be started: {error}", time.monotonic())
        else:
            self._report_start(child)

    def _plan_restart(self, child: Child, what: str, now: float) -> None:
        if child.process is not None:
            self._notify_watchdog(ended(child.process.pid))
        child.forget()
        child.failures = 1 if now - child.started > GOOD_RUN_SECONDS else child.failures + 1
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (child.failures - 1))
        child.next_start = now + pause
        say(NAME, f"{child.service.name} {what}; starting it again in {pause:g} s")

    def _check_health(self, child: Child) -> None:
        if child.process is None or not child.ready or child.kill_at is not None:
            return
        reason = child.service.ailment(child.process.pid)
        if reason is not None:
            say(NAME, f"{child.service.name}: {reason}; restarting it")
            child.ask_to_stop()

    def _guard(self) -> None:
        """Start a watchdog (see end_orphans.py) and register all children with it, if none is running."""
        if self._watchdog is not None and self._watchdog.poll() is None:
            return
        arguments = [cleaner_lock_file(self.data_dir), *self._remove_when_killed]
        self._watchdog = subprocess.Popen(  # noqa: S603  (our own script and arguments)
            [sys.executable, "-I", "-S", Path(__file__).with_name("end_orphans.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
            bufsize=1,
        )
        for child in self.children:
            self._report_start(child)

    def _report_start(self, child: Child) -> None:
        service = child.service
        if child.process is not None:
            self._notify_watchdog(started(child.process.pid, service.stop_signal, service.stops_last))

    def _notify_watchdog(self, line: str) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):  # killed; the next watchdog receives all children
                self._watchdog.stdin.write(line)
                self._watchdog.stdin.flush()

    def _stop(self, children: Sequence[Child]) -> None:
        asked_before = self._stops_asked
        for child in children:
            child.ask_to_stop()
        running = [child for child in children if child.process is not None]
        while running:
            for child in list(running):
                impatient = self._stops_asked > asked_before and not child.service.stops_last
                if child.exit_status() is not None:
                    running.remove(child)
                    child.forget()
                elif impatient or time.monotonic() >= (child.kill_at or 0.0):
                    child.kill()
            time.sleep(TICK_SECONDS / 2)


COMPLAINT_SECONDS = 60.0
_console = threading.Lock()


def say(name: str, text: str) -> None:
    """Print a line on the console, prefixed with the service's name, if any. Errors of a closed console are ignored."""
    with _console, contextlib.suppress(OSError, ValueError):
        print(f"{name:<9} | {text}" if name else text, flush=True)  # noqa: T201


class LogFile(logging.handlers.RotatingFileHandler):
    """A service's log file with limited size. Write errors are reported on the console at most once a minute."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=5_000_000, backupCount=2, encoding="utf-8", errors="replace", delay=True
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
            self.stream = None  # reopened for the next line

    def close(self) -> None:
        with contextlib.suppress(OSError):  # its buffer cannot be written to a full disk either
            super().close()


@dataclass(frozen=True)
class Service:
    """A program to run. Attributes that can change between two starts are functions."""

    name: str
    command: Callable[[], Sequence[str]]  # called in the supervisor's process before each start
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = Path("/")
    is_ready: Callable[[], bool] = lambda: True  # must be fast; called repeatedly until it returns True
    before_start: Callable[[], None] = lambda: None
    when_ready: Callable[[], None] = lambda: None
    # Must be fast; returns why the process must be restarted, or None.
    ailment: Callable[[int], str | None] = lambda pid: None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 5.0
    stops_last: bool = False
    keep_open: Sequence[int] = ()  # file descriptors that the process inherits


class Child:
    """A service's process, in its own process group. Use it only from the supervisor's main thread."""

    def __init__(self, service: Service, logs: Path) -> None:
        self.service = service
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.failures = 0
        # Times of the monotonic clock
        self.started = 0.0
        self.next_start = 0.0
        self.kill_at: float | None = None  # set when the stop signal is sent: when the process is killed
        self._log = LogFile(logs / f"{service.name}.log")
        self._pump: threading.Thread | None = None

    def start(self) -> int:
        """Start the process and return its id, which is also its group's id. Raises OSError if it cannot be started."""
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
        """Copy each output line to the console and the log file until all writers have closed the pipe."""
        with contextlib.closing(self._log), process.stdout or contextlib.nullcontext() as output:
            for raw in output or ():
                line = raw.decode("utf-8", "replace").rstrip()
                is_json = line.startswith('{"')  # already has time and source, and must stay valid JSON
                say("" if is_json else self.service.name, line)
                self._log.write(line, is_json=is_json)

    def exit_status(self) -> int | None:
        """Return the exit status, or None while it runs. Kills the rest of its group before its id can be reused."""
        process = self.process
        if process is None:
            return None
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self.kill()
        return process.wait()

    def forget(self) -> None:
        """Discard the process after its end."""
        self.process = None
        self.ready = False
        if self._pump is not None:
            self._pump.join(1)

    def ask_to_stop(self) -> None:
        """Send the stop signal to the process alone, once: a second SIGTERM during the first would block django-q2."""
        if self.process is not None and self.kill_at is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, self.service.stop_signal)
            self.kill_at = time.monotonic() + self.service.stop_seconds

    def kill(self) -> None:
        """Kill the whole process group, if it still exists."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def describe_exit(status: int) -> str:
    """Describe an exit status in words. A negative status is a signal."""
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
