"""Counters of several processes are summed, and a full disk costs a counter's file, never the process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from memoryhub.monitoring import metrics
from memoryhub.monitoring.metrics import CounterFile
from tests.small_disk import small_disk


def stored(path: Path) -> dict[str, float]:
    return {key: value for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path))}


def test_the_file_is_what_prometheus_client_collects(tmp_path: Path) -> None:
    path = tmp_path / "counter_1.db"
    counters = CounterFile(str(path))
    assert stored(path) == {}
    names = [f"{'k' * length}ü" for length in range(1, 200)]
    for number, name in enumerate(names):
        assert counters.read_value(name) == (0.0, 0.0)
        counters.write_value(name, number, 1.5)
    assert stored(path) == {name: number for number, name in enumerate(names)}
    assert counters.read_value(names[7]) == (7.0, 1.5)
    counters.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_process_that_gets_the_number_of_an_ended_one_counts_on(tmp_path: Path) -> None:
    path = tmp_path / "counter_1.db"
    first = CounterFile(str(path))
    first.write_value("a", 3, 0)
    first.close()
    second = CounterFile(str(path))
    assert second.read_value("a") == (3.0, 0.0)
    second.write_value("b", 1, 0)
    assert stored(path) == {"a": 3.0, "b": 1.0}


def test_what_found_no_room_is_in_the_file_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, is_full, write = tmp_path / "counter_1.db", True, os.pwrite

    def pwrite(file: int, data: bytes, start: int) -> int:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data, start)

    counters = CounterFile(str(path))
    counters.write_value("a", 1, 0)
    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(metrics, "RETRY_SECONDS", 0.0)
    counters.write_value("a", 2, 0)
    counters.write_value("b", 1, 0)
    assert stored(path) == {"a": 1.0}
    assert (counters.read_value("a")[0], counters.read_value("b")[0]) == (2.0, 1.0)
    is_full = False
    counters.write_value("b", 2, 0)
    assert stored(path) == {"a": 2.0, "b": 2.0}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_is_not_there_stops_nobody(tmp_path: Path) -> None:
    counters = CounterFile(str(tmp_path / "gone" / "counter_1.db"))
    counters.write_value("a", 1, 0)
    assert counters.read_value("a") == (1.0, 0.0)


COUNT_ON = """
import sys
from memoryhub.monitoring.metrics import SAVES
for number in range(5000):
    SAVES.labels(f"source {number}").inc()
print(sum(SAVES.labels(f"source {number}")._value.get() for number in range(5000)))
"""


def test_a_full_file_system_kills_nobody_that_counts(tmp_path: Path) -> None:
    """prometheus_client's own files end the process with SIGBUS in this case."""
    with small_disk(tmp_path, "64k") as folder:
        env = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
        done = subprocess.run(
            [sys.executable, "-c", COUNT_ON], env=env, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout.strip()) == (0, "5000.0"), done.stderr
