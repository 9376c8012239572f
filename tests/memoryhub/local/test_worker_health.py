"""Conditions on which a cluster of background workers is restarted."""

from pathlib import Path

import pytest

from memoryhub.local import worker_health
from memoryhub.local.worker_health import WorkerHealth, oldest_waiting_seconds

HEALTHY = {
    1: "qcluster Process-1 idle",
    2: "qcluster Process-2 processing lemon-tree 'memories.tasks.extract'",
    3: "qcluster Process-3 monitor",
    4: "qcluster Process-4 pusher",
}


class Cluster:
    """A fake for a cluster's processes and its queue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.members = dict(HEALTHY)
        self.oldest_waiting = 0.0
        monkeypatch.setattr(worker_health, "cluster_members", lambda pid: dict(self.members))
        monkeypatch.setattr(worker_health, "QUEUE_CHECK_SECONDS", 0.0)
        monkeypatch.setattr(worker_health.time, "monotonic", lambda: self.now)
        self.now = 1000.0
        self.health = WorkerHealth(lambda: self.oldest_waiting)

    def ask(self, pid: int = 77) -> str | None:
        self.now += 20.0
        return self.health(pid)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


@pytest.mark.parametrize("lost", [1, 3, 4])
def test_losing_an_idle_worker_or_a_helper_is_an_ailment(cluster: Cluster, lost: int) -> None:
    assert cluster.ask() is None
    del cluster.members[lost]
    cluster.members[9] = "qcluster Process-9 idle"  # the cluster replaced it, but the lock is gone
    assert f"process {lost} " in (cluster.ask() or "")


def test_losing_a_worker_in_the_middle_of_a_job_is_none(cluster: Cluster) -> None:
    assert cluster.ask() is None
    del cluster.members[2]
    cluster.members[9] = "qcluster Process-9 idle"
    assert cluster.ask() is None


def test_a_restarted_cluster_starts_with_a_clean_sheet(cluster: Cluster) -> None:
    assert cluster.ask(77) is None
    cluster.members = {21: "qcluster Process-1 idle"}
    assert cluster.ask(78) is None


def test_jobs_that_wait_beside_an_idle_worker_are_an_ailment_in_the_end(cluster: Cluster) -> None:
    cluster.oldest_waiting = 40.0
    assert cluster.ask() is None
    assert cluster.ask() is None
    assert "jobs have waited" in (cluster.ask() or "")


def test_jobs_that_wait_because_everybody_works_are_none(cluster: Cluster) -> None:
    cluster.oldest_waiting = 400.0
    cluster.members[1] = "qcluster Process-1 processing plum 'memories.tasks.extract'"
    assert [cluster.ask() for _ in range(5)] == [None] * 5


def test_a_database_that_is_away_is_not_the_workers_illness(data_dir: Path) -> None:
    assert oldest_waiting_seconds({"host": str(data_dir), "dbname": "memoryhub"}) == 0.0
