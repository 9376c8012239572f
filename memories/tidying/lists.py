"""Lists of memories to review, one per reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from memories.models import KeptAsIs, ReceiptItem
from memories.models.memory import MEMORY, MemoryQuerySet
from memories.usage import live_in
from memories.writing import review
from workspaces.index.embedding import active_model, embeddable
from workspaces.models import EmbeddingModel, User, Workspace
from workspaces.models.index import has_vector, place_of

STALE_AFTER = timedelta(days=180)
UNUSED_AFTER = timedelta(days=30)
SHOWN = 50  # memories of a list


def stale(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories that were recalled once, but neither recalled nor changed for STALE_AFTER, oldest use first."""
    before = now - STALE_AFTER
    rows = (
        live_in(workspace, user, now)
        .not_over(now)
        .filter(pinned=False, last_accessed_at__lt=before, updated_at__lt=before)
    )
    return _undecided(rows, since=before).order_by("last_accessed_at", "pk")


def never_used(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories older than UNUSED_AFTER that no answer has used, oldest first."""
    before = now - UNUSED_AFTER
    used = ReceiptItem.objects.filter(memory=OuterRef("pk"), used=True)
    rows = (
        live_in(workspace, user, now).not_over(now).filter(~Exists(used), pinned=False, created_at__lt=before)
    )
    return _undecided(rows, since=now - STALE_AFTER).order_by("created_at", "pk")


def without_vector(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories that an embedder is configured for, but that have no vector yet, oldest first."""
    rows, model = live_in(workspace, user, now), active_model()
    if model is None:
        return rows.none()
    agents = workspace.agents.values_list("pk", flat=True)
    places = [
        place_of(workspace.pk),
        place_of(0, owner_id=user.pk),
        *(place_of(0, agent_id=pk) for pk in agents),
    ]
    rows = rows.filter(embeddable(EmbeddingModel.objects.active()), ~has_vector(MEMORY, model, places))
    return rows.order_by("created_at", "pk")


def waiting(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return the proposals that wait for review, oldest first."""
    return review.proposals(workspace, user)


LISTS: Mapping[str, Callable[[Workspace, User, datetime], MemoryQuerySet]] = {
    "stale": stale,
    "unused": never_used,
    "unindexed": without_vector,
    "waiting": waiting,
}


def _undecided(rows: MemoryQuerySet, *, since: datetime) -> MemoryQuerySet:
    """Exclude memories that somebody marked as still good after ``since``, unless their text has changed."""
    kept = KeptAsIs.objects.filter(memory=OuterRef("pk"), other=None, at__gte=since)
    return rows.filter(~Exists(kept.filter(texts=OuterRef("content_hash"))))
