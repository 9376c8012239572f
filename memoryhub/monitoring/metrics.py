"""Counters and histograms, which ``memoryhub.http.health`` serves to Prometheus.

Web processes and workers keep their counters in files of one folder (prometheus_client's multiprocess mode). The
supervisor creates it and sets PROMETHEUS_MULTIPROC_DIR. Without the variable each process counts for itself. Labels are
fixed names, never user input, because each new value creates a time series.
"""

import os
from pathlib import Path

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Histogram

from memoryhub.errors import DomainError

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
SOURCES = frozenset(
    {"user", "model", "auto_chat", "auto_deep_think", "auto_research", "auto_compaction", "import"}
)
if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    Path(folder).mkdir(mode=0o700, exist_ok=True)  # something may have emptied the folder above it
REGISTRY = CollectorRegistry()

REQUESTS = Counter(
    "memoryhub_requests", "Requests answered.", ["route", "method", "status"], registry=REGISTRY
)
SECONDS = Histogram(
    "memoryhub_request_seconds",
    "Time until an answer began; streams go on after it.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
TURNS = Counter("memoryhub_turns", "Answers finished, by how they ended.", ["status"], registry=REGISTRY)
TOKENS = Counter(
    "memoryhub_tokens",
    "Tokens of answers in chats, estimated from their text.",
    ["direction"],
    registry=REGISTRY,
)
RECALLS = Counter(
    "memoryhub_recalls", "Recalls, degraded ones apart.", ["ranking", "degraded"], registry=REGISTRY
)
RECALL_SECONDS = Histogram(
    "memoryhub_recall_seconds",
    "Time of a recall.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
    registry=REGISTRY,
)
READS = Counter(
    "memoryhub_reads",
    "Recalls, lists and searches with replicas, by who answered.",
    ["by"],
    registry=REGISTRY,
)
SAVES = Counter(
    "memoryhub_memories_saved", "Memories stored, by where they came from.", ["source"], registry=REGISTRY
)
REFUSED = Counter("memoryhub_memories_refused", "Memories refused, by why.", ["kind"], registry=REGISTRY)
SHED = Counter(
    "memoryhub_shed",
    "What was refused at once, as there was more than can be done.",
    ["what"],
    registry=REGISTRY,
)
THROTTLED = Counter("memoryhub_throttled", "Requests over a limit.", ["limit"], registry=REGISTRY)


def count_request(request: HttpRequest, response: HttpResponseBase, seconds: float) -> str:
    """Count a request under its route's name and return the name. Paths contain ids, so each would be a time series."""
    match = request.resolver_match
    route = (match.view_name or match.route) if match else "none"
    REQUESTS.labels(route, method_of(request), response.status_code).inc()
    SECONDS.labels(route).observe(seconds)
    return route


def method_of(request: HttpRequest) -> str:
    """Return the request's HTTP method, or "other" for an unknown method, which would be a time series of its own."""
    return request.method if request.method in METHODS else OTHER


def count_saves(source: str, number: int = 1) -> None:
    """Count saved memories by source. Sources set by API clients are free text and counted as "other"."""
    SAVES.labels(source if source in SOURCES else OTHER).inc(number)


def count_recall(ranking: str, degraded: bool, seconds: float) -> None:
    RECALLS.labels(ranking, "yes" if degraded else "no").inc()
    RECALL_SECONDS.observe(seconds)


def count_refusal(error: DomainError) -> None:
    REFUSED.labels(error.code).inc()
