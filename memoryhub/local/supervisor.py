"""Keeps services running until it is told to stop, and leaves nothing behind however it ends.

A service that ends is started again after a growing pause. At the end they all stop together, and those that
`stops_last` (the database) after the others. If the supervisor itself is killed, the watchdog ends them.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from memoryhub.local.run_lock import cleaner_lock_file
from memoryhub.local.service import Child, Service, describe_exit, say, start_watchdog
from memoryhub.local.watchdog import FAREWELL, ended, started

NAME = "memoryhub"
TICK_SECONDS = 0.05
HEALTH_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
GOOD_RUN_SECONDS = 30.0  # after a run of this length earlier failures are forgotten
START_ATTEMPTS = 4  # a service that fails this often before it was ready stops the start
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartFailed(Exception):
    """A service that the rest needs could not be started; the text says which."""


class Stopping(Exception):
    """Somebody asked for the end while a start was waited for."""


class Supervisor:
    """Use as a context: leaving it stops everything. All its methods belong to the main thread, since a death
    signal follows the thread that forked."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_all()
        self._tell_watchdog(FAREWELL + "\n")
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.close()
            self._watchdog.wait(5)
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops_asked += 1

    # Starting and running

    def add(self, service: Service) -> Child:
        """Start a service and keep it running, without waiting for it."""
        child = Child(service, self.data_dir / "logs")
        self.children.append(child)
        self._start(child)
        return child

    def add_and_wait(self, service: Service) -> None:
        """Start a service that the next ones need. Raises StartFailed when it keeps failing."""
        child = self.add(service)

        def ready() -> bool:
            if child.failures >= START_ATTEMPTS:
                raise StartFailed(
                    f"{service.name} did not start: see {self.data_dir / 'logs' / service.name}.log"
                )
            return child.ready

        self._wait_for(ready)

    def run_once(self, service: Service) -> None:
        """Run a service to its end. Raises StartFailed when it fails."""
        child = Child(service, self.data_dir / "logs")
        self._start(child, restart=False)
        statuses: list[int] = []

        def over() -> bool:
            status = child.exit_status()
            if status is not None:
                statuses.append(status)
            return bool(statuses)

        try:
            self._wait_for(over)
        finally:
            group = child.process.pid if child.process else 0
            child.kill()
            child.forget()
            self._tell_watchdog(ended(group))
        if statuses[0] != 0:
            raise StartFailed(f"{service.name} {describe_exit(statuses[0])}, so the start ends here")

    def run(self) -> None:
        """Keep everything running until somebody asks for the end."""
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
            with contextlib.suppress(OSError):  # no room on the disk: asked again
                child.service.when_ready()
                child.ready = True

    def _start(self, child: Child, *, restart: bool = True) -> None:
        try:
            group = child.start()
        except OSError as error:
            if not restart:
                raise StartFailed(f"{child.service.name} could not be started: {error}") from error
            self._plan_restart(child, f"could not be started: {error}", time.monotonic())
            return
        self._tell_watchdog(started(group, child.service.stop_signal, child.service.stops_last))

    def _plan_restart(self, child: Child, what: str, now: float) -> None:
        if child.process is not None:
            self._tell_watchdog(ended(child.process.pid))
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

    # The watchdog

    def _guard(self) -> None:
        """Have a watchdog that knows every child, also after somebody killed the last one."""
        if self._watchdog is not None and self._watchdog.poll() is None:
            return
        self._watchdog = start_watchdog(cleaner_lock_file(self.data_dir), *self._remove_when_killed)
        for child in self.children:
            if child.process is not None:
                self._tell_watchdog(
                    started(child.process.pid, child.service.stop_signal, child.service.stops_last)
                )

    def _tell_watchdog(self, line: str) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):  # it was killed: the next one is told everything
                self._watchdog.stdin.write(line)
                self._watchdog.stdin.flush()

    # Stopping

    def _stop_all(self) -> None:
        if self.children:
            say(NAME, "stopping (once more to stop at once) …")
        for last in (False, True):
            self._stop([child for child in self.children if child.service.stops_last == last])

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
