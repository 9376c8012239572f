"""Detection of a django-q2 cluster that is running but processes no jobs.

A worker that is killed while it waits for a job never releases the lock of the queue that all workers share. The
cluster replaces the worker, but no worker receives a job again. The same happens if a process that fills or empties the
queues dies. The cluster is therefore restarted after the loss of such a process, and also if jobs wait although a
worker is idle. A worker that dies in the middle of a job holds no lock, so the cluster only needs to replace it.
"""

import time
from collections.abc import Callable, Mapping

import psutil
import psycopg

STUCK_SECONDS = 30.0
QUEUE_CHECK_SECONDS = 5.0
# Jobs that are due and not taken. The lock of a taken job lies in the future until its retry.
OLDEST_WAITING = "SELECT extract(epoch FROM now() - min(lock)) FROM django_q_ormq WHERE lock <= now()"


def oldest_waiting_seconds(database: Mapping[str, object]) -> float:
    """Return how many seconds the oldest due job has waited; 0 if none waits or the database is unavailable."""
    try:
        with psycopg.connect(**{**database, "connect_timeout": 3}) as connection:  # type: ignore[arg-type]
            row = connection.execute(OLDEST_WAITING).fetchone()
    except psycopg.Error:
        return 0.0  # an unavailable database is no fault of the worker
    return float(row[0]) if row and row[0] is not None else 0.0


class WorkerHealth:
    """A health check of the cluster.

    Call it every second with the cluster's process id. It returns the reason for a restart, or None.
    """

    def __init__(self, oldest_waiting: Callable[[], float]) -> None:
        self._oldest_waiting = oldest_waiting
        self._cluster = 0
        self._members: dict[int, str] = {}
        self._next_queue_check = 0.0
        self._stuck_since: float | None = None

    def __call__(self, cluster: int) -> str | None:
        members = cluster_members(cluster)
        if cluster != self._cluster:
            self._cluster, self._members, self._stuck_since = cluster, {}, None
        lost = [
            pid for pid, title in self._members.items() if pid not in members and " processing " not in title
        ]
        self._members = members
        if lost:
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
    """Return the titles of the cluster's workers, pusher and monitor, by process id.

    They are grandchildren of the main process ``cluster``. Deeper processes, which jobs start, are not included.
    """
    members: dict[int, str] = {}
    try:
        for sentinel in psutil.Process(cluster).children():
            for member in sentinel.children():
                try:
                    if member.status() != psutil.STATUS_ZOMBIE:
                        members[member.pid] = " ".join(member.cmdline()).strip()
                except psutil.NoSuchProcess:
                    continue
    except psutil.NoSuchProcess:
        return {}
    return members
