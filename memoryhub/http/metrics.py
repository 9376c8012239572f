"""The page ``/metrics`` for Prometheus: counters of all processes, and the current state of the database."""

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
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memoryhub.database.queries import count_or_estimate
from memoryhub.database.replicas import probe_state, what_ails
from memoryhub.local.worker_health import OLDEST_WAITING
from memoryhub.monitoring.metrics import REGISTRY

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAST_BACKUP: LiteralString = (
    "SELECT at FROM workspaces_auditevent WHERE verb = 'backup_made' ORDER BY id DESC LIMIT 1"
)
KEPT_SECONDS = 5.0  # seconds for which the state of the database is cached


def metrics(request: HttpRequest) -> HttpResponse:
    """Serve the metrics to a client with the right token. Returns 404 if no token is configured."""
    if not settings.METRICS_TOKEN:
        return HttpResponseNotFound("There is nothing here.\n", content_type="text/plain")
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        given.strip().encode(), settings.METRICS_TOKEN.encode()
    ):
        return HttpResponse("A token is needed.\n", status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


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


_counts: dict[str, tuple[str, Callable[[datetime], float]]] = {}


def register_count(name: str, help_text: str, count: Callable[[datetime], float]) -> None:
    """Register an app's count, which is computed each time the state of the database is collected."""
    _counts[name] = (help_text, count)


class DatabaseState(Collector):
    """A collector of queue and table counts, which are the same in every process. Cached for five seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[float, list[Metric]] | None = None

    def describe(self) -> list[Metric]:
        return []  # prevents a database query at registration

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
