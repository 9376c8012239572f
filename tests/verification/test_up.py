"""`manage.py up` as a person runs it: real processes in a temporary data folder, some of them killed."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from memoryhub.local import large_model_download
from memoryhub.local.large_model_download import State, Status, Wanted
from memoryhub.local.model_server import MODEL_NAME, free_port, read_endpoint
from memoryhub.local.postgres import connection_settings, socket_folder
from memoryhub.local.stack import answers
from memoryhub.local.supervisor import HEALTH_SECONDS
from memoryhub.model_files import CHAT_MODEL
from tests.memoryhub.local.processes import is_running, named_in_command, running, wait_until
from tests.migrated import lend_to
from tests.stack import prepared_in

BASE_DIR = Path(__file__).resolve().parents[2]
MARKS = {
    "postgres": "pginstall18/bin/postgres",
    "model": "memoryhub.local.model_server",
    "worker": "qcluster MainProcess",
    "web": "uvicorn",
}


class Installation:
    """A data folder and the supervisor that runs on it, most of the time."""

    def __init__(self, folder: Path, name: str = "data") -> None:
        self.data_dir = folder / name
        self.port = free_port()
        self.output = folder / "output"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.process: subprocess.Popen[bytes] | None = None
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYHUB_")}
        inherited.pop("DATABASE_URL", None)
        inherited.pop("DJANGO_SETTINGS_MODULE", None)
        self.environment = {
            **inherited,
            "MEMORYHUB_DATA_DIR": str(self.data_dir),
            "MEMORYHUB_PORT": str(self.port),
            "TMPDIR": str(self.temporary),
            "MEMORYHUB_BUILTIN_MODEL": "small",  # nothing is downloaded by a test that does not mean to
            "MEMORYHUB_WEB_PROCESSES": "1",  # so that a killed one is noticed
            "MEMORYHUB_ADMIN_USERNAME": "ada",
            "MEMORYHUB_ADMIN_PASSWORD": "difference engine",
        }

    def manage(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(BASE_DIR / "manage.py"), *arguments],
            env={**self.environment, **environment},
            cwd=BASE_DIR,
            capture_output=True,
            text=True,
            check=False,
        )

    def begin(self) -> None:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(BASE_DIR / "manage.py"), "up"],
                env=self.environment,
                cwd=BASE_DIR,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self) -> None:
        self.begin()
        wait_until(lambda: self.has_said("MemoryHub is ready"), "it is ready")

    def has_said(self, text: str) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output.read_text()[-3000:]
        return text in self.output.read_text()

    def is_stopped_as_it_says(self, text: str) -> None:
        self.begin()
        wait_until(lambda: self.has_said(text), "it begins")
        assert self.end(signal.SIGTERM) == 0
        assert not named_in_command(self.data_dir)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(60)
        self.process = None
        return status

    def processes(self) -> list[psutil.Process]:
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def service(self, name: str) -> psutil.Process | None:
        """Return the current process of a service of the supervisor."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            try:
                if is_running(child) and MARKS[name] in " ".join(child.cmdline()):
                    return child
            except psutil.NoSuchProcess:
                continue
        return None

    def page_answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", "/accounts/login/")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def database_answers(self) -> bool:
        try:
            with psycopg.connect(**connection_settings(self.data_dir)) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def model_answers(self) -> bool:
        endpoint = read_endpoint(self.data_dir)
        if endpoint is None:
            return False
        return answers("127.0.0.1", int(endpoint.base_url.split(":")[2].split("/")[0]), "/health")

    def counters(self) -> list[Path]:
        """Return the files of processes' counters, which are in memory."""
        return list(Path("/dev/shm").glob(f"memoryhub-metrics-*-{self.data_dir.stat().st_ino:x}/*.db"))

    def left_over(self) -> list[Path]:
        """Return the contents of temporary folders: the environment's, the socket's below /tmp, the counters' in
        memory.
        """
        metrics = Path("/dev/shm").glob(f"memoryhub-metrics-*-{self.data_dir.stat().st_ino:x}")
        socket = socket_folder(self.data_dir)
        return [*self.temporary.iterdir(), *metrics, *([socket] if socket.exists() else [])]

    def run_job(self) -> None:
        """Queue a job that makes a folder, and wait for the folder."""
        made = Path(tempfile.mkdtemp(dir=self.data_dir.parent)) / "made-by-a-job"
        code = f"from django_q.tasks import async_task; async_task('os.mkdir', {str(made)!r})"
        queued = self.manage("shell", "-c", code)
        assert queued.returncode == 0, queued.stderr
        wait_until(made.exists, "the job ran")


@contextmanager
def installed(name: str = "data") -> Iterator[Installation]:
    folder = Path(tempfile.mkdtemp(prefix="mh-"))
    found = Installation(folder, name)
    try:
        yield found
    finally:
        if found.process is not None:
            found.end(signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with installed() as found:
        prepared_in(found.data_dir)
        lend_to(found.data_dir)
        yield found


@pytest.fixture
def up(installation: Installation) -> Installation:
    """The same supervisor for all tests, started again after those that end it."""
    if installation.process is None:
        installation.start()
    return installation


def test_a_first_start_makes_the_database_from_nothing_and_can_be_stopped_meanwhile() -> None:
    with installed() as fresh:
        fresh.is_stopped_as_it_says("Bringing the database up to date, ")
        fresh.start()
        assert fresh.page_answers()


def test_it_serves_pages_and_says_where_and_how(up: Installation) -> None:
    assert up.page_answers()
    said = up.output.read_text()
    assert f"http://127.0.0.1:{up.port}" in said
    assert "first account" not in said, "the environment names the administrator"
    assert str(up.data_dir) in said


def test_the_administrator_of_the_environment_was_made(up: Installation) -> None:
    with psycopg.connect(**connection_settings(up.data_dir)) as connection:
        found = connection.execute("SELECT username FROM workspaces_user WHERE is_superuser").fetchall()
    assert found == [("ada",)]


def test_a_second_start_says_so_and_hurts_nobody(up: Installation) -> None:
    wait_until(lambda: None not in [up.service(name) for name in MARKS], "everything is up")
    before = [up.service(name) for name in MARKS]
    second = up.manage("up")
    assert second.returncode != 0
    assert up.process is not None
    assert f"already running on {up.data_dir} (process {up.process.pid}, http://127.0.0.1:{up.port})" in (
        second.stderr
    )
    assert [up.service(name) for name in MARKS] == before
    assert up.page_answers()


def test_a_folder_that_cannot_be_written_is_said_with_the_settings_name(up: Installation) -> None:
    ended = up.manage("up", MEMORYHUB_DATA_DIR="/proc/memoryhub")
    assert ended.returncode != 0
    assert "MEMORYHUB_DATA_DIR" in ended.stderr


@pytest.mark.parametrize(
    ("name", "works_again"),
    [
        ("postgres", Installation.database_answers),
        ("model", Installation.model_answers),
        ("web", Installation.page_answers),
    ],
)
def test_a_killed_service_comes_back(up: Installation, name: str, works_again) -> None:  # type: ignore[no-untyped-def]
    wait_until(lambda: works_again(up), f"{name} works")
    endpoint, first = read_endpoint(up.data_dir), up.service(name)
    assert first is not None
    first.kill()
    wait_until(lambda: up.service(name) not in {first, None}, f"there is a new {name}")
    wait_until(lambda: works_again(up), f"{name} works again")
    assert read_endpoint(up.data_dir) == endpoint


def test_a_killed_worker_comes_back_and_nothing_of_the_old_one_stays(up: Installation) -> None:
    old: list[psutil.Process] = []

    def is_up() -> bool:
        """Refresh the processes: a worker that lost its database before may be replaced while this waits."""
        with suppress(psutil.NoSuchProcess):
            if worker := up.service("worker"):
                old[:] = [worker, *worker.children(recursive=True)]
        return len(old) > 4

    wait_until(is_up, "the workers are up")
    old[0].kill()
    wait_until(lambda: up.service("worker") not in {old[0], None}, "there is a new worker")
    assert not running(old)
    up.run_job()


def test_a_frozen_worker_comes_back(up: Installation) -> None:
    """Every idle worker is killed: the queue's lock is lost, and the workers that replace them get no job.

    The health check samples the workers once a second. It ignores the end of one that it saw at work, so all must have
    been idle for longer than that.
    """
    idle: list[psutil.Process] = []
    busy_at = time.monotonic()

    def are_idle() -> bool:
        nonlocal busy_at
        idle.clear()
        with suppress(psutil.NoSuchProcess):
            if worker := up.service("worker"):
                members = [
                    (each, " ".join(each.cmdline()).strip()) for each in worker.children(recursive=True)
                ]
                idle.extend(each for each, title in members if title.endswith(" idle"))
                if not idle or any(" processing " in title for _, title in members):
                    busy_at = time.monotonic()
        return time.monotonic() - busy_at > 3 * HEALTH_SECONDS

    wait_until(are_idle, "workers wait for a job")
    for process in idle:
        process.kill()
    up.run_job()


def test_killing_the_supervisor_leaves_no_process(up: Installation) -> None:
    wait_until(up.model_answers, "everything is up")
    processes = up.processes()
    assert len(processes) > 8
    up.end(signal.SIGKILL)
    wait_until(lambda: not running(processes), "nobody is left")
    wait_until(lambda: not named_in_command(up.data_dir), "nobody works on the data folder")
    assert read_endpoint(up.data_dir) is None
    wait_until(lambda: not up.counters(), "nothing is left in memory")


def test_after_that_it_starts_again_with_its_data(up: Installation) -> None:
    assert up.page_answers()
    with psycopg.connect(**connection_settings(up.data_dir)) as connection:
        assert connection.execute("SELECT count(*) FROM workspaces_user").fetchone() == (1,)


def test_stopping_leaves_no_process_and_the_data(up: Installation) -> None:
    up.page_answers()
    processes = up.processes()
    assert up.counters()
    assert up.end(signal.SIGTERM) == 0
    assert not up.counters()
    assert not running(processes)
    assert not named_in_command(up.data_dir)
    assert read_endpoint(up.data_dir) is None
    assert (up.data_dir / "postgres" / "PG_VERSION").exists()


def test_the_larger_model_takes_over_and_the_small_one_again_when_it_is_removed() -> None:
    """The small model's weights stand in for the larger one's, so that nothing is downloaded."""
    with installed() as hub:
        prepared_in(hub.data_dir)
        lend_to(hub.data_dir)
        hub.environment["MEMORYHUB_BUILTIN_MODEL"] = "large"
        large_model_download.folder(hub.data_dir).mkdir()
        large_model_download.model_file(hub.data_dir).symlink_to(CHAT_MODEL.path())
        hub.start()

        def answering() -> str:
            endpoint = read_endpoint(hub.data_dir)
            return endpoint.model if endpoint and hub.model_answers() else ""

        wait_until(lambda: answering() == large_model_download.NAME, "the larger model answers")
        large_model_download.want(hub.data_dir, Wanted.REMOVE)
        wait_until(lambda: answering() == MODEL_NAME, "the small one answers again")
        removed = Status(State.REMOVED)
        wait_until(lambda: large_model_download.read_status(hub.data_dir) == removed, "the page can say so")
        assert not large_model_download.model_file(hub.data_dir).exists()
        assert hub.page_answers()


def test_no_temporary_folder_is_left_by_a_stop_even_after_a_kill() -> None:
    with installed("d" * 100) as deep:  # too long for a socket, which is below /tmp then
        prepared_in(deep.data_dir)
        lend_to(deep.data_dir)
        for ending in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            deep.start()
            deep.run_job()
            assert deep.page_answers()
            assert socket_folder(deep.data_dir) in deep.left_over()
            deep.end(ending)
            if ending is signal.SIGKILL:
                wait_until(lambda: not named_in_command(deep.data_dir), "its watchdog has ended the others")
            else:
                assert deep.left_over() == []
