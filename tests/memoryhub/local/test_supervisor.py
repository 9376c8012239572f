"""The supervisor, with small programs in place of the real services."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memoryhub.local.data_folder import make_data_folders
from memoryhub.local.supervisor import COMPLAINT_SECONDS, LogFile, Service, StartFailed, Stopping, Supervisor
from tests.memoryhub.local.processes import is_running, running, wait_until

SLEEP = "import time; time.sleep(600)"
# A child in the same group that does not get a signal to the parent, like a background worker's processes.
PARENT_OF_ONE = "import os, time; os.fork(); time.sleep(600)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(600)"


@pytest.fixture
def supervisor(data_dir: Path) -> Iterator[Supervisor]:
    make_data_folders(data_dir)
    found = Supervisor(data_dir)
    with found:
        yield found


def service(name: str, code: str, **options: object) -> Service:
    return Service(name, lambda: [sys.executable, "-u", "-c", code], **options)  # type: ignore[arg-type]


def run_until(supervisor: Supervisor, condition, what: str) -> None:  # type: ignore[no-untyped-def]
    """Run the supervisor's loop until a condition holds."""

    def done() -> bool:
        supervisor._tick()
        return bool(condition())

    wait_until(done, what)


def process_of(supervisor: Supervisor, position: int = 0) -> psutil.Process:
    found = supervisor.children[position].process
    assert found is not None
    return psutil.Process(found.pid)


def test_a_killed_service_comes_back(supervisor: Supervisor) -> None:
    child = supervisor.add(service("one", SLEEP))
    first = process_of(supervisor)
    first.kill()
    run_until(supervisor, lambda: child.process and child.process.pid != first.pid, "it runs again")
    assert is_running(process_of(supervisor))


def test_what_a_killed_service_had_started_goes_before_it_comes_back(supervisor: Supervisor) -> None:
    child = supervisor.add(service("one", PARENT_OF_ONE))
    first = process_of(supervisor)
    wait_until(lambda: first.children(), "it has a child")
    grandchild = first.children()[0]
    first.kill()
    run_until(supervisor, lambda: child.process and child.process.pid != first.pid, "it runs again")
    assert not is_running(grandchild)


def test_pauses_grow_with_every_failure_in_a_row(supervisor: Supervisor) -> None:
    child = supervisor.add(service("one", "raise SystemExit(3)"))
    pauses = []
    for failures in (1, 2, 3):
        child.next_start = 0.0
        run_until(supervisor, lambda count=failures: child.failures == count, "it failed once more")
        pauses.append(child.next_start - child.started)
    assert pauses[0] < pauses[1] < pauses[2]


def test_a_service_that_is_needed_and_keeps_failing_ends_the_start(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryhub.local.supervisor.FIRST_PAUSE_SECONDS", 0.01)
    with pytest.raises(StartFailed, match=r"one did not start: see .*one\.log"):
        supervisor.add_and_wait(service("one", "raise SystemExit(3)", is_ready=lambda: False))


def test_a_task_that_fails_ends_the_start(supervisor: Supervisor) -> None:
    with pytest.raises(StartFailed, match="task ended with status 3"):
        supervisor.run_once(service("task", "raise SystemExit(3)"))
    supervisor.run_once(service("task", "print('well done')"))


def test_a_service_that_is_ill_is_restarted(supervisor: Supervisor) -> None:
    ill: list[int] = []
    child = supervisor.add(service("one", SLEEP, ailment=lambda pid: "it is frozen" if pid in ill else None))
    first = process_of(supervisor)
    run_until(supervisor, lambda: child.ready, "it is ready")
    ill.append(first.pid)
    run_until(supervisor, lambda: child.process and child.process.pid != first.pid, "it runs again")
    assert not is_running(first)
    assert is_running(process_of(supervisor))


def test_a_service_that_does_not_listen_is_killed(supervisor: Supervisor) -> None:
    child = supervisor.add(service("one", DEAF, stop_seconds=0.2))
    wait_until(lambda: "deaf" in log(supervisor, "one"), "it stopped listening")
    process = process_of(supervisor)
    supervisor._stop([child])
    assert not is_running(process)


def test_the_database_stops_after_the_others(data_dir: Path) -> None:
    make_data_folders(data_dir)
    order = data_dir / "order"
    say_when_stopped = (
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    print(sys.argv[1], file=open(sys.argv[2], 'a')); sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop); print('listening'); time.sleep(600)"
    )
    with Supervisor(data_dir) as supervisor:
        for name, last in (("database", True), ("web", False)):
            command = [sys.executable, "-u", "-c", say_when_stopped, name, str(order)]
            supervisor.add(Service(name, lambda words=command: words, stops_last=last))  # type: ignore[misc]
            wait_until(lambda of=name: "listening" in log(supervisor, of), f"{name} is up")
    assert order.read_text().split() == ["web", "database"]


def log(supervisor: Supervisor, name: str) -> str:
    path = supervisor.data_dir / "logs" / f"{name}.log"
    return path.read_text() if path.exists() else ""


def test_leaving_stops_everything_also_after_an_error(data_dir: Path) -> None:
    make_data_folders(data_dir)
    with pytest.raises(ZeroDivisionError), Supervisor(data_dir) as supervisor:
        supervisor.add(service("one", PARENT_OF_ONE))
        process = process_of(supervisor)
        wait_until(lambda: process.children(), "it has a child")
        processes = [process, *process.children()]
        raise ZeroDivisionError
    assert not running(processes)


def test_a_signal_ends_the_waiting_and_the_handlers_come_back(data_dir: Path) -> None:
    make_data_folders(data_dir)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stopping), Supervisor(data_dir) as supervisor:
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGTERM]).start()
        supervisor.add_and_wait(service("one", SLEEP, is_ready=lambda: False))
    assert signal.getsignal(signal.SIGTERM) is before


def test_output_goes_to_the_console_and_to_a_log_under_the_name(
    supervisor: Supervisor, capfd: pytest.CaptureFixture[str]
) -> None:
    supervisor.run_once(service("task", "print('gr\\u00fcezi'); import sys; sys.stderr.write('oh dear\\n')"))
    console = capfd.readouterr().out
    assert "task      | grüezi\n" in console
    assert "task      | oh dear\n" in console
    assert "grüezi" in log(supervisor, "task")


def test_a_log_that_cannot_be_written_is_said_once_a_minute_and_goes_on_afterwards(
    data_dir: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_file = LogFile(data_dir / "logs" / "web.log")
    for number in range(50):
        log_file.write(f"line {number}", is_json=False)
    console = capfd.readouterr()
    assert console.out.splitlines() == [
        f"memoryhub | {log_file.baseFilename} cannot be written: No such file or directory"
    ]
    assert not console.err
    later = time.monotonic() + COMPLAINT_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    log_file.write("a minute later", is_json=False)
    assert len(capfd.readouterr().out.splitlines()) == 1
    make_data_folders(data_dir)
    log_file.write("again", is_json=False)
    log_file.write('{"at": 1}', is_json=True)
    first, second = Path(log_file.baseFilename).read_text().splitlines()
    assert first.endswith(" again") and second == '{"at": 1}'


def test_a_full_disk_for_logs_costs_no_traceback(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_data_folders(data_dir)
    path = data_dir / "logs" / "web.log"
    path.symlink_to("/dev/full")
    log_file = LogFile(path)
    for number in range(50):
        log_file.write(f"line {number}", is_json=False)
    log_file.close()
    path.unlink()
    log_file.write("again", is_json=False)
    assert path.read_text().endswith(" again\n")
    console = capfd.readouterr()
    assert console.out == f"memoryhub | {path} cannot be written: No space left on device\n"
    assert not console.err


def test_what_finds_no_room_when_a_service_is_ready_is_tried_again(supervisor: Supervisor) -> None:
    tried: list[bool] = []

    def when_ready() -> None:
        tried.append(True)
        if len(tried) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    child = supervisor.add(service("one", SLEEP, when_ready=when_ready))
    run_until(supervisor, lambda: child.ready, "it is ready")
    assert len(tried) == 3


def test_a_killed_watchdog_is_replaced_and_knows_the_children(supervisor: Supervisor) -> None:
    supervisor.add(service("one", SLEEP))
    first = supervisor._watchdog
    assert first is not None
    first.kill()
    run_until(supervisor, lambda: supervisor._watchdog is not first, "there is a new watchdog")
    second, child = supervisor._watchdog, process_of(supervisor)
    assert second is not None
    supervisor._watchdog = None
    second.communicate()  # closes the pipe, as when its supervisor is killed
    assert not is_running(child)
