"""Health checks and metrics. ``/healthz``: the process responds. ``/readyz``: the state of each part that it needs.
``/metrics``: counters of all processes and the state of the database, for Prometheus.

"Not ready" (503) means that every page or every save fails: the database is unavailable, not migrated or read-only. A
missing worker, model or embedder only degrades the service: chats can be read, and memories saved and found by words,
so it should still receive traffic.
"""

import hmac
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memoryhub.database.queries import count_or_estimate, current_connection
from memoryhub.database.replicas import (
    ALONE,
    AWAY,
    answering,
    primary_is_away,
    probe_state,
    stands_in,
    what_ails,
)
from memoryhub.database.startup import psycopg_settings, what_is_newer
from memoryhub.errors import NO_SPACE
from memoryhub.llm.model_check import chat_model_trouble, embedder_trouble
from memoryhub.local.worker_health import OLDEST_WAITING
from memoryhub.monitoring.metrics import REGISTRY

logger = logging.getLogger(__name__)
KEPT_SECONDS = 5.0  # seconds for which a result is cached
DATABASE_SECONDS = 2
LONGEST_SECONDS = 4.0
QUEUE_SECONDS = 120  # a job that waits longer means too few workers
# An idle worker queries the queue five times a second.
HEARTBEAT = """
SELECT extract(epoch FROM now() - max(greatest(state_change, query_start))) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = %s
"""
WORKER_NAME = "memoryhub worker"
# A write that is rolled back. It fails on a standby, in a read-only database and without permission to write.
WRITE = "UPDATE django_migrations SET name = name WHERE id = (SELECT min(id) FROM django_migrations)"
# A single row fits in existing pages. A megabyte of rows with little work_mem needs space on the disk.
SPILL = "SELECT count(*) FROM unnest(array_fill(repeat('x', 1000), ARRAY[1000])) AS wide"
NO_ROOM = {"53100", "53400"}  # disk full, or the limit of temporary files
FULL = "its disk is full"
ESSENTIAL = ("database", "migrations", "writes")


@dataclass(frozen=True)
class Part:
    """State of a checked part, such as the database. ``why`` names the fault without details that help an attacker."""

    ok: bool
    why: str = ""


GOOD = Part(True)
UNKNOWN = Part(False, "unknown without the database")


def status_of(parts: dict[str, Part]) -> str:
    if all(part.ok for part in parts.values()):
        return "ok"
    # While the database is away, a replica still answers reads, and another host could not write either.
    is_read = not parts["database"].ok and any(
        parts[each].why not in {AWAY, ALONE} for each in settings.REPLICAS
    )
    return "degraded" if is_read or all(parts[name].ok for name in ESSENTIAL) else "not_ready"


_lock = threading.Lock()
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="readiness")
_kept: tuple[float, dict[str, Part]] | None = None
_counts: dict[str, tuple[LiteralString, str]] = {}
_migrations: frozenset[tuple[str, str]] | None = None


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    parts = readiness()
    body = {"status": status_of(parts), "parts": {name: asdict(part) for name, part in parts.items()}}
    return JsonResponse(body, status=503 if body["status"] == "not_ready" else 200)


def readiness() -> dict[str, Part]:
    """Return the state of all parts, at most five seconds old. Concurrent requests wait for one check."""
    global _kept
    with _lock:
        if _kept is None or time.monotonic() - _kept[0] > KEPT_SECONDS:
            parts = check()
            status = status_of(parts)
            if _kept is None or status_of(_kept[1]) != status:
                troubles = "; ".join(f"{name}: {part.why}" for name, part in parts.items() if not part.ok)
                level = logging.INFO if status == "ok" else logging.WARNING
                logger.log(level, "Readiness: %s%s", status, f" ({troubles})" if troubles else "")
            _kept = (time.monotonic(), parts)
        return _kept[1]


def check() -> dict[str, Part]:
    """Check all parts in parallel. A part that does not answer within four seconds counts as faulty."""
    futures: dict[str, Future[Any]] = {
        "database": _threads.submit(_database),
        "model": _threads.submit(chat_model_trouble),
        "replicas": _threads.submit(_replicas),
    }
    # Skip the bundled embedder in a probes process, which would have to load it only for this check.
    if settings.EMBEDDING_BASE_URL or settings.PROCESS_ROLE != "probes":
        futures["embedder"] = _threads.submit(embedder_trouble)
    wait(futures.values(), LONGEST_SECONDS)
    parts: dict[str, Part] = futures["database"].result() if futures["database"].done() else _no_database()
    for name in ("model", "embedder"):
        if name in futures:
            trouble = _trouble(futures[name])
            parts[name] = Part(not trouble, trouble)
    silent = dict.fromkeys(settings.REPLICAS, Part(False, AWAY))
    return parts | (futures["replicas"].result() if futures["replicas"].done() else silent)


def _trouble(future: Future[str]) -> str:
    if not future.done():
        return "no answer in time"
    return "cannot be asked" if future.exception() else future.result()


def _no_database(why: str = "cannot be reached") -> dict[str, Part]:
    names = ("migrations", "writes", "queue", "worker", *_counts)
    return {"database": Part(False, why), **dict.fromkeys(names, UNKNOWN)}


def _replicas() -> dict[str, Part]:
    troubles = {alias: what_ails(probe_state(alias)) for alias in settings.REPLICAS}
    return {alias: Part(not why, why) for alias, why in troubles.items()}


def _database() -> dict[str, Part]:
    """Check the database over a new connection, because an exhausted pool would block the check."""
    options = {"connect_timeout": DATABASE_SECONDS, "options": f"-c statement_timeout={DATABASE_SECONDS}s"}
    try:
        with psycopg.connect(**{**psycopg_settings(), **options}) as connection:
            parts = {"database": GOOD, "migrations": _migrated(connection)}
            if not parts["migrations"].ok:
                return parts | dict.fromkeys(
                    ("writes", "queue", "worker", *_counts),
                    Part(False, "unknown before the migrations"),
                )
            parts |= {"queue": _queue(connection), "worker": _worker(connection)}
            parts |= _counted(connection)
            return parts | {"writes": _writes(connection)}
    except psycopg.Error as error:
        return _no_database(FULL if NO_SPACE in str(error) else "cannot be reached")


def _migrated(connection: psycopg.Connection[Any]) -> Part:
    global _migrations
    if _migrations is None:
        _migrations = frozenset(MigrationLoader(None).graph.nodes)
    try:
        applied = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    except psycopg.errors.UndefinedTable:
        applied = []
    if newer := len(what_is_newer(connection, applied)):
        return Part(False, f"{newer} of a newer version")
    missing = len(_migrations - set(applied))
    return Part(False, f"{missing} not applied") if missing else GOOD


def _writes(connection: psycopg.Connection[Any]) -> Part:
    """Check that the database accepts writes and has disk space. Takes some ten milliseconds."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(WRITE)
            connection.execute("SET LOCAL work_mem = '64kB'")
            connection.execute(SPILL)
    except psycopg.errors.ReadOnlySqlTransaction:
        return Part(False, "it can only be read")
    except psycopg.Error as error:
        if error.sqlstate in NO_ROOM:
            return Part(False, FULL)
        return Part(False, f"it takes none ({error.sqlstate})" if error.sqlstate else "it takes none")
    return GOOD


def _queue(connection: psycopg.Connection[Any]) -> Part:
    seconds = int(connection.execute(OLDEST_WAITING).fetchall()[0][0])
    return Part(False, f"a job has waited for {seconds} s") if seconds > QUEUE_SECONDS else GOOD


def register_count(name: str, query: LiteralString, why: str) -> None:
    """Add an app's check, which fails while ``query`` does not count 0. ``why`` is a format string for the count."""
    _counts[name] = (query, why)


def _counted(connection: psycopg.Connection[Any]) -> dict[str, Part]:
    parts = {}
    for name, (query, why) in _counts.items():
        [(number,)] = connection.execute(query).fetchall()
        parts[name] = Part(False, why % number) if number else GOOD
    return parts


def _worker(connection: psycopg.Connection[Any]) -> Part:
    """Check that a worker showed activity within a job's time limit plus 30 seconds, since all may be busy."""
    [(silent,)] = connection.execute(HEARTBEAT, [WORKER_NAME]).fetchall()
    if silent is None:
        return Part(False, "none is running")
    return Part(False, f"silent for {int(silent)} s") if silent > settings.JOB_TIMEOUT + 30 else GOOD


LAST_BACKUP: LiteralString = (
    "SELECT at FROM workspaces_auditevent WHERE verb = 'backup_made' ORDER BY id DESC LIMIT 1"
)


def metrics(request: HttpRequest) -> HttpResponse:
    """Serve the metrics to a client with the right token. Returns 404 if no token is configured."""
    if not settings.METRICS_TOKEN:
        return HttpResponseNotFound("There is nothing here.\n", content_type="text/plain")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        token.strip().encode(), settings.METRICS_TOKEN.encode()
    ):
        return HttpResponse("A token is needed.\n", status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")


def exposition() -> bytes:
    """Return all metrics in Prometheus's text format."""
    registry, folder = CollectorRegistry(), os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder and Path(folder).is_dir():
        multiprocess.MultiProcessCollector(registry, folder)
        counted = generate_latest(registry)
    else:  # only this process's counters, also if the folder was removed
        counted = generate_latest(REGISTRY)
    state = CollectorRegistry()
    state.register(_state)
    return counted + generate_latest(state)


_gauges: dict[str, tuple[str, Callable[[datetime], float]]] = {}


def register_gauge(name: str, help_text: str, count: Callable[[datetime], float]) -> None:
    """Add an app's gauge to the metrics. ``count`` is called each time the state of the database is collected."""
    _gauges[name] = (help_text, count)


class DatabaseState(Collector):
    """A collector of queue and table counts, which are the same in every process."""

    def collect(self) -> Iterator[Metric]:
        """Yield all gauges, without those from the database if neither it nor a replica in its place responds."""
        # Prometheus waits less long than a request waits for a connection, so look whether there is one to be had.
        is_away = probe_state(DEFAULT_DB_ALIAS) is None and primary_is_away(failed=True)
        yield _gauge("memoryhub_database_up", "Whether the database can be reached.", float(not is_away))
        with answering():
            if not is_away or stands_in():
                yield from self._read_database()
        yield from _of_replicas()

    def _read_database(self) -> Iterator[Metric]:
        from django_q.models import Failure, OrmQ

        with current_connection().cursor() as cursor:
            cursor.execute(OLDEST_WAITING)
            (oldest,) = cursor.fetchone()
            cursor.execute(LAST_BACKUP)
            last = cursor.fetchone()
        yield _gauge(
            "memoryhub_queue_oldest_seconds", "How long the oldest job has waited.", max(0.0, oldest)
        )
        yield _gauge("memoryhub_queue_jobs", "Jobs in the queue.", OrmQ.objects.count())
        failed = count_or_estimate(Failure.objects.all())[0]
        yield _gauge("memoryhub_failed_jobs", "Jobs that failed for good.", failed)
        text = "When the last backup was made; 0 where none was."
        yield _gauge("memoryhub_last_backup_timestamp_seconds", text, last[0].timestamp() if last else 0.0)
        for name, (help_text, count) in _gauges.items():
            yield _gauge(name, help_text, count(timezone.now()))


def _of_replicas() -> Iterator[Metric]:
    if not settings.REPLICAS:
        return
    lag = GaugeMetricFamily("memoryhub_replica_lag_seconds", "How far it may be behind.", labels=["replica"])
    text = "Whether it follows closely, or is the primary."
    up = GaugeMetricFamily("memoryhub_replica_up", text, labels=["replica"])
    for number, alias in enumerate(settings.REPLICAS, 1):
        state = probe_state(alias)
        up.add_metric([str(number)], float(not what_ails(state)))
        if state is not None and state.follows:
            lag.add_metric([str(number)], max(0.0, state.lag))
    yield from (lag, up)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


_state = DatabaseState()
