"""Counters and histograms, which ``memoryhub.http.health`` serves to Prometheus.

Web processes and workers keep their counters in files of one folder (prometheus_client's multiprocess mode). The
supervisor creates it and sets PROMETHEUS_MULTIPROC_DIR. Without the variable each process counts for itself. Labels are
fixed names, never user input, because each new value creates a time series.
"""

import os
import struct
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.mmap_dict import MmapedDict

# The shared counter files, written without memory-mapping.
# prometheus_client maps sparse files, and the kernel kills a process (SIGBUS) that writes to such a map when the disk
# is full. Here an update is a ``pwrite`` of 16 bytes, which raises an ordinary error.

RETRY_SECONDS = 10.0
_USED = struct.Struct("i")  # the header: number of bytes in use
_VALUE = struct.Struct("dd")


class CounterFile(MmapedDict):
    """All metrics of one type of one process, in memory and in a file in prometheus_client's format.

    While the file cannot be written, the process counts in memory, and writes everything once it can. Not thread-safe:
    prometheus_client holds a lock.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        self._path = Path(filename)
        self._positions: dict[str, int] = {}
        self._data = bytearray(8)
        self._file: int | None = None
        self._retry_at = 0.0
        _USED.pack_into(self._data, 0, len(self._data))
        # Continue the file of an ended process with the same id, because counters must not decrease.
        with suppress(OSError, RuntimeError, ValueError, struct.error):
            for key, value, timestamp, _ in self.read_all_values_from_file(filename):
                self._add(key)
                _VALUE.pack_into(self._data, self._positions[key], value, timestamp)
        self._write_whole()

    def read_value(self, key: str) -> tuple[float, float]:
        if key not in self._positions:
            start = len(self._data)
            self._add(key)
            self._write(start, len(self._data))
            self._write(0, _USED.size)  # the header comes last, so that it covers only complete data
        value, timestamp = _VALUE.unpack_from(self._data, self._positions[key])
        return value, timestamp

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        self.read_value(key)
        start = self._positions[key]
        _VALUE.pack_into(self._data, start, value, timestamp)
        self._write(start, start + _VALUE.size)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._retry_at = float("inf")

    def _add(self, key: str) -> None:
        encoded = key.encode()
        padded = encoded + b" " * (8 - (len(encoded) + _USED.size) % 8)
        self._data += _USED.pack(len(encoded)) + padded + _VALUE.pack(0.0, 0.0)
        _USED.pack_into(self._data, 0, len(self._data))
        self._positions[key] = len(self._data) - _VALUE.size

    def _write(self, start: int, end: int) -> None:
        if self._file is None:
            if time.monotonic() >= self._retry_at:
                self._write_whole()
            return
        try:
            _write_all(self._file, self._data[start:end], start)
        except OSError:
            self.close()
            self._retry_at = time.monotonic() + RETRY_SECONDS

    def _write_whole(self) -> None:
        """Replace the file atomically, so that a collector never reads an incomplete file."""
        draft = self._path.with_suffix(".part")
        try:
            self._file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            _write_all(self._file, self._data, 0)
            draft.replace(self._path)
        except OSError:
            self.close()
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._retry_at = time.monotonic() + RETRY_SECONDS


def _write_all(file: int, data: bytes | bytearray, start: int) -> None:
    """Write all bytes. Raises OSError if not all of them fit on the disk."""
    while data:
        written = os.pwrite(file, data, start)
        data, start = data[written:], start + written


# `values` looks up this name for each file, so it is set before the first metric.
values.MmapedDict = CounterFile  # type: ignore[misc]

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
SOURCES = frozenset(
    {"user", "model", "auto_chat", "auto_deep_think", "auto_research", "auto_compaction", "import"}
)
REGISTRY = CollectorRegistry()
_counter, _histogram = partial(Counter, registry=REGISTRY), partial(Histogram, registry=REGISTRY)

REQUESTS = _counter("memoryhub_requests", "Requests answered.", ["route", "method", "status"])
SECONDS = _histogram(
    "memoryhub_request_seconds",
    "Time until an answer began; streams go on after it.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
TURNS = _counter("memoryhub_turns", "Answers finished, by how they ended.", ["status"])
TOKENS = _counter("memoryhub_tokens", "Tokens of answers in chats, estimated from their text.", ["direction"])
RECALLS = _counter("memoryhub_recalls", "Recalls, degraded ones apart.", ["ranking", "degraded"])
RECALL_SECONDS = _histogram(
    "memoryhub_recall_seconds",
    "Time of a recall.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
READS = _counter("memoryhub_reads", "Recalls, lists and searches with replicas, by who answered.", ["by"])
SAVES = _counter("memoryhub_memories_saved", "Memories stored, by where they came from.", ["source"])
REFUSED = _counter("memoryhub_memories_refused", "Memories refused, by why.", ["kind"])
SHED = _counter("memoryhub_shed", "What was refused at once, as there was more than can be done.", ["what"])
THROTTLED = _counter("memoryhub_throttled", "Requests over a limit.", ["limit"])


def count_request(request: HttpRequest, response: HttpResponseBase, seconds: float) -> str:
    """Count a request by its route's name, and return the name. Paths contain ids, so each would be a series."""
    match = request.resolver_match
    route = (match.view_name or match.route) if match else "none"
    REQUESTS.labels(route, method_of(request), response.status_code).inc()
    SECONDS.labels(route).observe(seconds)
    return route


def method_of(request: HttpRequest) -> str:
    """Return the request's HTTP method, or "other" for an unknown one, which would create a time series."""
    return request.method if request.method in METHODS else OTHER


def count_saves(source: str, number: int = 1) -> None:
    """Count saved memories by source. Sources set by API clients are free text and counted as "other"."""
    SAVES.labels(source if source in SOURCES else OTHER).inc(number)


def count_recall(ranking: str, degraded: bool, seconds: float) -> None:
    RECALLS.labels(ranking, "yes" if degraded else "no").inc()
    RECALL_SECONDS.observe(seconds)
