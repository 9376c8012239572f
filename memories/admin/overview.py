"""The first screen of the admin: is anything waiting, is anything broken, what is growing.

Every number leads to the list behind it, is shown only to who may see that list, and costs an index lookup
that stops counting at a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Min, OuterRef, QuerySet
from django.urls import reverse
from django.utils.timesince import timesince
from django_q.models import Failure, OrmQ

from memories.embedding import active_model
from memories.models import EmbeddingModel, Extraction, Memory, MemoryEmbedding
from memories.models.extraction import ExtractionStatus
from memoryhub.admin import count_or_estimate
from workspaces.models import User, Workspace

GROWTH = timedelta(days=7)


@dataclass(frozen=True)
class Figure:
    label: str
    value: str
    url: str
    note: str = ""
    needs_attention: bool = False


@dataclass(frozen=True)
class Group:
    title: str
    figures: list[Figure]


def overview(user: Any, now: datetime) -> list[Group]:
    """What this member of staff may see, in the order in which they would ask."""
    groups = [
        Group("Waiting for somebody", list(_waiting(user, now))),
        Group("In the background", list(_background(user, now))),
        Group("Growing", list(_growing(user, now))),
    ]
    return [group for group in groups if group.figures]


def _waiting(user: Any, now: datetime) -> Iterator[Figure]:
    if user.has_perm("memories.view_memory"):
        updates = Memory.objects.live(now).filter(may_replace__isnull=False)
        url = _list("memories_memory", "review=replaces")
        yield _figure("possible updates", updates, url, "A newer memory contradicts an older one.")
    if user.has_perm("memories.view_extraction"):
        failed = Extraction.objects.filter(status=ExtractionStatus.FAILED)
        url = _list("memories_extraction", "status=failed")
        yield _figure("failed extractions", failed, url, "Given up after all attempts. Can be retried.")
    if user.has_perm("django_q.view_failure"):
        url = _list("django_q_failure")
        yield _figure("failed jobs", Failure.objects.all(), url, "Background work that raised an error.")


def _background(user: Any, now: datetime) -> Iterator[Figure]:
    model = active_model()
    if user.has_perm("memories.view_memory") and model is not None:
        vectors = MemoryEmbedding.objects.filter(memory=OuterRef("pk"), model=model)
        missing = Memory.objects.live(now).filter(~Exists(vectors))
        url = _list("memories_memory", "vector=without")
        yield _figure("memories without a vector", missing, url, "Found by words until they have one.")
        failed = Memory.objects.live(now).filter(embedding_failed_at__isnull=False)
        if failed.exists():
            url = _list("memories_memory", "vector=failed")
            yield _figure("could not be embedded", failed, url, "The embedder failed on these. Tried again.")
    if user.has_perm("memories.view_embeddingmodel") and (next_model := EmbeddingModel.objects.building()):
        share = f"{100 * next_model.done_count // max(1, next_model.total_count)} %"
        note = f"{next_model.label}: {next_model.progress}. Recall compares the earlier one until then."
        held = bool(next_model.stopped_at or next_model.error)
        url = _list("memories_embeddingmodel")
        yield Figure("of the next embedding model's vectors", share, url, note, needs_attention=held)
    if user.has_perm("django_q.view_ormq"):
        oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
        age = now - oldest if oldest else None
        if age is None:
            note = "None waits for a worker."
        else:
            waited = timesince(oldest, now) if age >= timedelta(minutes=1) else "less than a minute"
            note = f"The oldest has waited {waited}."
        stuck = age is not None and age > timedelta(minutes=5)
        yield _figure("jobs in the queue", OrmQ.objects.all(), _list("django_q_ormq"), note, attention=stuck)


def _growing(user: Any, now: datetime) -> Iterator[Figure]:
    if user.has_perm("memories.view_memory"):
        live = Memory.objects.live(now)
        week = live.filter(created_at__gt=now - GROWTH)
        number, estimate = count_or_estimate(week)
        note = f"{_worded(number, estimate)} saved in the last {GROWTH.days} days."
        yield _figure("memories in use", live, _list("memories_memory"), note, attention=False)
    if user.has_perm("workspaces.view_workspace"):
        yield _figure("workspaces", Workspace.objects.all(), _list("workspaces_workspace"), attention=False)
    if user.has_perm("workspaces.view_user"):
        people = User.objects.filter(is_active=True)
        yield _figure("people", people, _list("workspaces_user", "is_active__exact=1"), attention=False)


def _figure(label: str, rows: QuerySet[Any], url: str, note: str = "", *, attention: bool = True) -> Figure:
    number, estimate = count_or_estimate(rows)
    return Figure(label, _worded(number, estimate), url, note, needs_attention=attention and number > 0)


def _worded(number: int, estimate: bool) -> str:
    return f"about {number:,}" if estimate else f"{number:,}"


def _list(name: str, query: str = "") -> str:
    url = reverse(f"admin:{name}_changelist")
    return f"{url}?{query}" if query else url
