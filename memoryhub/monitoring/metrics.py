"""What Prometheus may ask for at ``/metrics``: counters of every process, and the state of the database at that moment.

The counters of web processes and workers lie in files of one folder (prometheus_client's multiprocess mode), which the
supervisor makes and names in PROMETHEUS_MULTIPROC_DIR. Without the variable a process counts for itself.
Labels are names of ours, never what somebody typed: each new value would be a new series.
"""

from __future__ import annotations

import hmac
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import LiteralString

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotFound
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memoryhub.database.counting import count_or_estimate
from memoryhub.database.replicas.state import probe_state, what_ails
from memoryhub.errors import DomainError
from memoryhub.local.worker_health import OLDEST_WAITING
from memoryhub.monitoring.counter_files import use_counter_files

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAST_BACKUP: LiteralString = (
    "SELECT at FROM workspaces_auditevent WHERE verb = 'backup_made' ORDER BY id DESC LIMIT 1"
)
KEPT_SECONDS = 5.0  # for which the state of the database is told again
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
SOURCES = frozenset(
    {"user", "model", "auto_chat", "auto_deep_think", "auto_research", "auto_compaction", "import"}
)
use_counter_files()
_own = CollectorRegistry()

REQUESTS = Counter("memoryhub_requests", "Requests answered.", ["route", "method", "status"], registry=_own)
SECONDS = Histogram(
    "memoryhub_request_seconds",
    "Time until an answer began; streams go on after it.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=_own,
)
TURNS = Counter("memoryhub_turns", "Answers finished, by how they ended.", ["status"], registry=_own)
TOKENS = Counter(
    "memoryhub_tokens", "Tokens of answers in chats, estimated from their text.", ["direction"], registry=_own
)
RECALLS = Counter(
    "memoryhub_recalls", "Recalls, degraded ones apart.", ["ranking", "degraded"], registry=_own
)
RECALL_SECONDS = Histogram(
    "memoryhub_recall_seconds",
    "Time of a recall.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
    registry=_own,
)
READS = Counter(
    "memoryhub_reads", "Recalls, lists and searches with replicas, by who answered.", ["by"], registry=_own
)
SAVES = Counter(
    "memoryhub_memories_saved", "Memories stored, by where they came from.", ["source"], registry=_own
)
REFUSED = Counter("memoryhub_memories_refused", "Memories refused, by why.", ["kind"], registry=_own)
SHED = Counter(
    "memoryhub_shed", "What was refused at once, as there was more than can be done.", ["what"], registry=_own
)
THROTTLED = Counter("memoryhub_throttled", "Requests over a limit.", ["limit"], registry=_own)


def count_request(request: HttpRequest, response: HttpResponseBase, seconds: float) -> str:
    """Count it under its route's name, and return that: an address has ids in it, and would be a series of its own."""
    match = request.resolver_match
    route = (match.view_name or match.route) if match else "none"
    REQUESTS.labels(route, method_of(request), response.status_code).inc()
    SECONDS.labels(route).observe(seconds)
    return route


def method_of(request: HttpRequest) -> str:
    """One of HTTP's own; whoever makes up another makes no series of it."""
    return request.method if request.method in METHODS else OTHER


def count_saves(source: str, number: int = 1) -> None:
    """By origin. A caller's own label is one word for all of them: it is text, and any number of series."""
    SAVES.labels(source if source in SOURCES else OTHER).inc(number)


def count_recall(ranking: str, degraded: bool, seconds: float) -> None:
    RECALLS.labels(ranking, "yes" if degraded else "no").inc()
    RECALL_SECONDS.observe(seconds)


def count_refusal(error: DomainError) -> None:
    REFUSED.labels(error.code).inc()


def metrics(request: HttpRequest) -> HttpResponse:
    """For whoever has the token. Without one set, the page is not there; with a wrong one neither says why."""
    if not settings.METRICS_TOKEN:
        return HttpResponseNotFound("There is nothing here.\n", content_type="text/plain")
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        given.strip().encode(), settings.METRICS_TOKEN.encode()
    ):
        return HttpResponse("A token is needed.\n", status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def exposition() -> bytes:
    """Everything, in Prometheus's text format."""
    registry, folder = CollectorRegistry(), os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder and Path(folder).is_dir():
        multiprocess.MultiProcessCollector(registry, folder)
        counted = generate_latest(registry)
    else:  # each process for itself, as also after somebody removed the folder
        counted = generate_latest(_own)
    state = CollectorRegistry()
    state.register(_state)
    return counted + generate_latest(state)


_counts: dict[str, tuple[str, Callable[[datetime], float]]] = {}


def register_count(name: str, help_text: str, count: Callable[[datetime], float]) -> None:
    """What a room above counts of its tables, each time the state of the database is told."""
    _counts[name] = (help_text, count)


class DatabaseState(Collector):
    """Queue and tables as they are now, whichever process is asked. Nothing when the database is away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[float, list[Metric]] | None = None

    def describe(self) -> list[Metric]:
        return []  # else registering would ask the database

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] > KEPT_SECONDS:
                self._kept = (time.monotonic(), list(self._read_all()))
            yield from self._kept[1]

    def _read_all(self) -> Iterator[Metric]:
        from django_q.models import Failure, OrmQ

        with connection.cursor() as cursor:
            cursor.execute(OLDEST_WAITING)
            row = cursor.fetchone()
        age = max(0.0, float(row[0])) if row and row[0] is not None else 0.0
        yield _gauge("memoryhub_queue_oldest_seconds", "How long the oldest job has waited.", age)
        yield _gauge("memoryhub_queue_jobs", "Jobs in the queue.", OrmQ.objects.count())
        failed = count_or_estimate(Failure.objects.all())[0]
        yield _gauge("memoryhub_failed_jobs", "Jobs that failed for good.", failed)
        with connection.cursor() as cursor:
            cursor.execute(LAST_BACKUP)
            row = cursor.fetchone()
        text = "When the last backup was made; 0 where none was."
        yield _gauge("memoryhub_last_backup_timestamp_seconds", text, row[0].timestamp() if row else 0.0)
        for name, (help_text, count) in _counts.items():
            yield _gauge(name, help_text, count(timezone.now()))
        yield from _of_replicas()


def _of_replicas() -> Iterator[Metric]:
    if not settings.REPLICAS:
        return
    lag = GaugeMetricFamily("memoryhub_replica_lag_seconds", "How far it may be behind.", labels=["replica"])
    up = GaugeMetricFamily(
        "memoryhub_replica_up", "Whether it follows closely, or is the primary.", labels=["replica"]
    )
    for number, alias in enumerate(settings.REPLICAS, 1):
        found = probe_state(alias)
        up.add_metric([str(number)], float(not what_ails(found)))
        if found is not None and found.follows:
            lag.add_metric([str(number)], max(0.0, found.lag))
    yield from (lag, up)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


_state = DatabaseState()
