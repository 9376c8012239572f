"""Detection of a django-q2 cluster that is running but processes no jobs.

A worker that is killed while it waits for a job never releases the lock of the queue that all workers share. The
cluster replaces the worker, but no worker receives a job again. The same happens if a process that fills or empties the
queues dies. The cluster is therefore restarted after the loss of such a process, and also if jobs wait although a
worker is idle. A worker that dies in the middle of a job holds no lock, so the cluster only needs to replace it.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil
import psycopg

STUCK_SECONDS = 30.0
QUEUE_CHECK_SECONDS = 5.0
# Jobs that are due and not taken. The lock of a taken job lies in the future until its retry.
OLDEST_WAITING = """
SELECT coalesce(extract(epoch FROM now() - min(lock)), 0)::float8 FROM django_q_ormq WHERE lock <= now()
"""


def oldest_waiting_seconds(database: Mapping[str, object]) -> float:
    """Return how many seconds the oldest due job has waited; 0 if none waits or the database is unavailable."""
    try:
        with psycopg.connect(**{**database, "connect_timeout": 3}) as connection:  # type: ignore[arg-type]
            return float(connection.execute(OLDEST_WAITING).fetchall()[0][0])
    except psycopg.Error:
        return 0.0  # an unavailable database is no fault of the worker


class WorkerHealth:
    """A health check, called each second with the cluster's process id. Returns the reason for a restart, or None."""

    def __init__(self, oldest_waiting: Callable[[], float]) -> None:
        self._oldest_waiting = oldest_waiting
        self._cluster = 0
        self._members: dict[int, str] = {}
        self._next_queue_check = 0.0
        self._stuck_since: float | None = None

    def __call__(self, cluster: int) -> str | None:
        members, before = cluster_members(cluster), self._members
        if cluster != self._cluster:
            self._cluster, self._stuck_since, before = cluster, None, {}
        self._members = members
        if lost := [pid for pid in before.keys() - members if " processing " not in before[pid]]:
            return f"process {lost[0]} of it ended, and may have taken the queue's lock with it"
        return self._stuck(members)

    def _stuck(self, members: Mapping[int, str]) -> str | None:
        now = time.monotonic()
        if now < self._next_queue_check:
            return None
        self._next_queue_check = now + QUEUE_CHECK_SECONDS
        idle = any(title.endswith(" idle") for title in members.values())
        if not idle or self._oldest_waiting() < STUCK_SECONDS:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= STUCK_SECONDS:
            return f"jobs have waited for more than {STUCK_SECONDS:g} s while a worker is idle"
        return None


def cluster_members(cluster: int) -> dict[int, str]:
    """Return the titles of a cluster's workers, pusher and monitor, which are its grandchildren, by process id."""
    members: dict[int, str] = {}
    try:
        for sentinel in psutil.Process(cluster).children():
            for member in sentinel.children():
                with suppress(psutil.NoSuchProcess):
                    if member.status() != psutil.STATUS_ZOMBIE:
                        members[member.pid] = " ".join(member.cmdline()).strip()
    except psutil.NoSuchProcess:
        return {}
    return members
