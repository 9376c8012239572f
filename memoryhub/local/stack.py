"""The services that `make run` starts: database, model, background worker and web server; `up` can add an embedder."""

import errno
import http.client
import os
import re
import secrets
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psycopg

from memoryhub.local import large_model_download, model_server
from memoryhub.local.data_folder import (
    AlreadyRunning,
    DataFolderError,
    make_data_folders,
    run_lock,
    wait_for_cleaner,
)
from memoryhub.local.postgres import EmbeddedPostgres, PostgresError, remove_socket_folder
from memoryhub.local.run_with_parent import launch_command
from memoryhub.local.supervisor import NAME, Service, StartFailed, Stopping, Supervisor, say
from memoryhub.local.worker_health import WorkerHealth, oldest_waiting_seconds

HTTP_SERVER = (
    *("-m", "uvicorn"),
    # Longer than browsers, proxies and API clients reuse an idle connection. If the server closed it first, a client
    # could not know whether its request was read.
    *("--timeout-keep-alive", "75"),
    # MEMORYHUB_TRUSTED_PROXIES decides whose X-Forwarded-For is trusted; uvicorn would trust any on this machine.
    "--no-proxy-headers",
    *("--no-access-log", "--no-server-header", "--lifespan", "off", "--log-level", "warning"),
)
WEB_SERVER = (*HTTP_SERVER, "memoryhub.asgi:application")
PROBES_SERVER = (*HTTP_SERVER, "memoryhub.worker_asgi:application")
METRICS_BYTES = 2**20  # space for the counters of all processes
TOGETHER = ("model", "worker", "web")
PARTS = (*TOGETHER, "embedder")  # the embedder needs a host or data folder of its own
EMBEDDER_KEY_VARIABLE = "MEMORYHUB_EMBEDDER_KEY"  # as in memoryhub.llm.embedder_server
PRIVATE = re.compile(r"^(MEMORYHUB_|DATABASE_URL$|PG|OTEL_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")


@dataclass(frozen=True)
class Stack:
    """The services to start on this host, and their settings."""

    base_dir: Path
    data_dir: Path
    host: str
    port: int
    database: Mapping[str, object]  # psycopg's connection settings
    web_processes: int = 1
    connections: int = 3_000  # limit per web process, streams included; more get status 503
    embedded_database: bool = True  # else one elsewhere is used
    embedded_model: bool = True  # likewise
    # Whether the larger built-in model is downloaded in the background and then replaces the small one: "auto" if the
    # machine has room for it, "large" always, "" never.
    large_model: str = ""
    sign_up_open: bool = True
    first_is_administrator: bool = False
    has_administrator: Callable[[], bool] = lambda: False  # called when everything is ready
    parts: frozenset[str] = frozenset(TOGETHER)
    model_key: str = ""  # if set, the model listens at `host` and `port` for hosts that send this key
    embedder_key: str = ""  # likewise for the embedder
    metrics_folder: Path | None = None  # shared counters of all processes
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def address(self) -> str:
        host = "localhost" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def run(stack: Stack) -> int:
    """Start all services and run them until Ctrl-C or SIGTERM. Return the exit status; errors are printed."""
    try:
        make_data_folders(stack.data_dir)
        with run_lock(stack.data_dir, stack.address), suppress(Stopping):  # stopped while starting
            try:
                if not wait_for_cleaner(stack.data_dir, seconds=30.0):
                    raise StartFailed("Services of a killed run have not ended yet. Start again in a moment.")
                with metrics_folder(stack.data_dir) as folder:
                    _start_and_run(replace(stack, metrics_folder=folder))
            finally:
                model_server.remove_endpoint(stack.data_dir)
                remove_socket_folder(stack.data_dir)
    except (AddressInUse, AlreadyRunning, DataFolderError, PostgresError, StartFailed) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    say(NAME, "stopped")
    return 0


def _start_and_run(stack: Stack) -> None:
    left_when_killed = [
        model_server.endpoint_file(stack.data_dir, each) for each in (model_server.SMALL, model_server.LARGE)
    ]
    left_when_killed += [stack.metrics_folder] if stack.metrics_folder else []
    model_server.remove_endpoint(stack.data_dir)
    listens = stack.parts & {"web", "worker", "embedder"}
    with listen(stack.host, stack.port) if listens else nullcontext() as listener, ExitStack() as starting:
        say(NAME, f"starting, data in {stack.data_dir}")
        if listener is not None and "web" in stack.parts:
            starting.enter_context(starting_page(listener))
        with Supervisor(stack.data_dir, remove_when_killed=left_when_killed) as supervisor:
            if stack.embedded_database:
                supervisor.add_and_wait(database_service(stack))
            if "model" in stack.parts and (stack.embedded_model or stack.model_key):
                supervisor.add(model_service(stack))
            if listener is not None and "embedder" in stack.parts:
                supervisor.add_and_wait(embedder_service(stack, listener))
            if stack.parts & {"worker", "web"}:
                supervisor.run_once(prepare_service(stack))
            if "worker" in stack.parts:
                supervisor.add(worker_service(stack))
            if listener is not None and stack.parts & {"web", "worker"} == {"worker"}:
                supervisor.add_and_wait(web_service(stack, listener, "probes"))
            if listener is not None and "web" in stack.parts:
                for number in range(1, stack.web_processes + 1):
                    name = "web" if stack.web_processes == 1 else f"web{number}"
                    supervisor.add_and_wait(web_service(stack, listener, name))
            starting.close()
            if "model" in stack.parts and stack.large_model and not stack.model_key:
                supervisor.add(large_model_service(stack))  # last, so that it does not slow down the start
            _welcome(stack)
            supervisor.run()


@contextmanager
def metrics_folder(data_dir: Path) -> Iterator[Path | None]:
    """Provide a folder for the counters of the web processes and the worker, which `/metrics` adds up.

    The folder is in memory or among temporary files, because the data disk may be full. Yields None if neither has
    space; each process then counts for itself. Counters start from zero with every start.
    """
    folder = _make_metrics_folder(data_dir)
    try:
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _make_metrics_folder(data_dir: Path) -> Path | None:
    status = data_dir.stat()  # the inode distinguishes two containers that share /dev/shm
    name = f"memoryhub-metrics-{os.getuid()}-{status.st_dev:x}-{status.st_ino:x}"
    for place in (lambda: "/dev/shm", tempfile.gettempdir):  # noqa: S108  (a folder of our own in it, mode 0700)
        with suppress(OSError):  # the folder does not exist, is full, or the name belongs to another user
            folder = Path(place()) / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            try:
                (folder / "room").write_bytes(bytes(METRICS_BYTES))
                (folder / "room").unlink()
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            return folder
    return None


def _welcome(stack: Stack) -> None:
    first = "set MEMORYHUB_ADMIN_USERNAME and MEMORYHUB_ADMIN_PASSWORD, then start again"
    if stack.sign_up_open and stack.first_is_administrator:
        first = f"sign up at {stack.address}/accounts/signup/, it is the administrator's"
    trouble = model_server.read_trouble(stack.data_dir) if "model" in stack.parts else ""
    if "web" in stack.parts:
        if trouble:
            say(NAME, f"MemoryHub is up without a model that answers: {stack.address}")
            say(NAME, trouble)
        else:
            say(NAME, f"MemoryHub is ready: {stack.address}")
        if not stack.has_administrator():
            say(NAME, f"first account: {first}")
    else:
        say(NAME, f"MemoryHub is ready: {', '.join(part for part in PARTS if part in stack.parts)}")
    if stack.parts & {"web", "worker"} == {"worker"}:
        say(NAME, f"for monitors: {stack.address}/healthz, /readyz and /metrics")
    if (
        stack.large_model
        and "model" in stack.parts
        and not large_model_download.model_file(stack.data_dir).exists()
    ):
        say(
            NAME,
            "a better model (1.1 GB) is fetched in the background; MEMORYHUB_BUILTIN_MODEL=small keeps the small one",
        )
    say(NAME, f"data: {stack.data_dir}")
    say(NAME, f"stop: Ctrl-C, or kill {os.getpid()}")


def _python(*arguments: str, death_signal: signal.Signals = signal.SIGKILL) -> Callable[[], Sequence[str]]:
    """Return a function that returns the command line of a Python program.

    The program receives `death_signal` when the supervisor dies, once for each thread of the supervisor. Programs that
    do not tolerate repeated signals need SIGKILL.
    """
    return lambda: launch_command([sys.executable, *arguments], death_signal=death_signal)


def _environment(stack: Stack) -> dict[str, str]:
    own = {
        "MEMORYHUB_DATA_DIR": str(stack.data_dir),
        "MEMORYHUB_HOST": stack.host,
        "MEMORYHUB_PORT": str(stack.port),
    }
    if stack.metrics_folder is not None:
        own["PROMETHEUS_MULTIPROC_DIR"] = str(stack.metrics_folder)
    return {**stack.environment, **own, "PYTHONUNBUFFERED": "1"}


def prepare_service(stack: Stack) -> Service:
    command = _python(str(stack.base_dir / "manage.py"), "prepare")
    return Service("prepare", command, environment=_environment(stack), folder=stack.base_dir)


def database_service(stack: Stack) -> Service:
    """Return the service of the embedded Postgres. Creates the cluster if it does not exist."""
    postgres = EmbeddedPostgres(stack.data_dir)
    postgres.initialise()

    def is_ready() -> bool:
        try:
            if not postgres.is_ready():
                return False
            postgres.create_database()
        except psycopg.Error:
            return False
        return True

    return Service(
        "postgres",
        postgres.command,
        environment=postgres.environment(),
        before_start=postgres.clear_leftovers,
        is_ready=is_ready,
        stop_signal=signal.SIGINT,
        stop_seconds=20.0,
        stops_last=True,
    )


def model_service(stack: Stack) -> Service:
    """Return the service of the small built-in model. Address and key stay the same for the supervisor's lifetime."""
    host, port, key = model_server.LOOPBACK, model_server.free_port(), secrets.token_urlsafe(32)
    if stack.model_key:
        host, port, key = stack.host, stack.port, stack.model_key
    reached_at = model_server.LOOPBACK if host == "0.0.0.0" else host  # noqa: S104
    return _model_server(stack, "model", model_server.SMALL, reached_at, port, key, "--host", host)


def large_model_service(stack: Stack) -> Service:
    """Return the service that downloads and serves the larger model. Its address is published once it is ready."""
    host, port, key = model_server.LOOPBACK, model_server.free_port(), secrets.token_urlsafe(32)
    arguments = ["--large", *(["--anyway"] if stack.large_model == "large" else [])]
    service = _model_server(stack, "large", model_server.LARGE, host, port, key, *arguments)
    return replace(
        service, before_start=partial(model_server.remove_endpoint, stack.data_dir, model_server.LARGE)
    )


def _model_server(
    stack: Stack, name: str, profile: model_server.Profile, host: str, port: int, key: str, *arguments: str
) -> Service:
    endpoint = model_server.Endpoint(f"http://{host}:{port}/v1", key, profile.name)
    own = ("--data-dir", str(stack.data_dir), "--port", str(port))
    return Service(
        name,
        _python("-m", "memoryhub.local.model_server", *own, *arguments),
        environment={**_public_environment(stack), model_server.KEY_VARIABLE: key},
        folder=stack.base_dir,
        is_ready=partial(answers, host, port, "/health"),  # 503 while the model is loaded
        when_ready=partial(model_server.write_endpoint, stack.data_dir, endpoint, profile),
    )


def embedder_service(stack: Stack, listener: socket.socket) -> Service:
    """Return the service of the bundled embedder, for other processes and hosts."""
    return Service(
        "embedder",
        _python("-m", "memoryhub.llm.embedder_server", "--fd", str(listener.fileno())),
        environment={**_public_environment(stack), EMBEDDER_KEY_VARIABLE: stack.embedder_key},
        folder=stack.base_dir,
        is_ready=partial(answers, stack.host, stack.port, "/health"),
        keep_open=[listener.fileno()],
    )


def _public_environment(stack: Stack) -> dict[str, str]:
    """Return the environment without our keys and passwords, for third-party compiled code (docs/security.md)."""
    variables = {name: value for name, value in stack.environment.items() if not PRIVATE.search(name)}
    return {**variables, "PYTHONUNBUFFERED": "1"}


def worker_service(stack: Stack) -> Service:
    """Return the service of the django-q2 cluster, which is restarted if it hangs."""
    return Service(
        "worker",
        _python(str(stack.base_dir / "manage.py"), "qcluster", "--skip-checks"),  # `prepare` ran the checks
        environment=_environment(stack),
        folder=stack.base_dir,
        ailment=WorkerHealth(partial(oldest_waiting_seconds, stack.database)),
        stop_seconds=5.0,  # an unfinished job runs again at the next start
    )


def web_service(stack: Stack, listener: socket.socket, name: str) -> Service:
    """Return the service of a web process or, named "probes", of the health checks of a host without one."""
    server, path = (PROBES_SERVER, "/healthz") if name == "probes" else (WEB_SERVER, "/accounts/login/")
    arguments = [*server, "--fd", str(listener.fileno()), "--timeout-graceful-shutdown", "3"]
    arguments += ["--limit-concurrency", str(stack.connections)]
    return Service(
        name,
        _python(*arguments, death_signal=signal.SIGTERM),
        environment=_environment(stack),
        folder=stack.base_dir,
        is_ready=partial(answers, stack.host, stack.port, path),
        stop_seconds=6.0,  # uvicorn waits three seconds for open streams
        keep_open=[listener.fileno()],
    )


# The web server's socket, and a check whether a server answers.

STARTING_PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2"><meta name="color-scheme" content="light dark">
<title>Starting &hellip;</title></head>
<body style="display:grid;place-content:center;min-height:90vh;font:1rem/1.6 system-ui,sans-serif">
<main><h1 style="font-size:1.5rem">MemoryHub is starting &hellip;</h1>
<p>The first start takes up to a minute. This page opens it by itself.</p></main></body></html>
"""
_STARTING = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html; charset=utf-8\r\nRetry-After: 2\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(STARTING_PAGE)
) + STARTING_PAGE


class AddressInUse(Exception):
    """Raised when the web server's address is not available. The message names the setting to change."""


def listen(host: str, port: int) -> socket.socket:
    """Open the socket in this process, so that it stays open while the web server restarts. Raises AddressInUse."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by connections. uvicorn does not set it on a socket that it did not open, and without it each
        # streamed token would wait for the browser's acknowledgement of the previous one.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(where)
        listener.listen(2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"Port {port} of {host} is in use by another program: set MEMORYHUB_PORT to a free one."
            ) from error
        raise AddressInUse(
            f"Cannot listen on {host}:{port} ({error.strerror}): set MEMORYHUB_HOST and MEMORYHUB_PORT."
        ) from error
    return listener


def answers(host: str, port: int, path: str) -> bool:
    """Return whether the server answers within a second with a status below 500."""
    local = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    connection = http.client.HTTPConnection(local, port, timeout=1.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def starting_page(listener: socket.socket) -> Iterator[None]:
    """Answer requests during the start with a page that says "MemoryHub is starting" and reloads itself."""
    over = threading.Event()
    listener.setblocking(False)  # the web server may accept the connection first
    thread = threading.Thread(target=_answer_all, args=(listener, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answer_all(listener: socket.socket, over: threading.Event) -> None:
    while not over.is_set():
        if not select.select([listener], [], [], 0.2)[0]:
            continue
        with suppress(OSError):  # the client disconnected, or the web server accepted first
            connection = listener.accept()[0]
            with connection:
                connection.settimeout(0.5)
                connection.recv(65536)
                connection.sendall(_STARTING)
                connection.shutdown(socket.SHUT_WR)
