"""Background jobs of memories: take ids, load, make one call, and may run twice."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from memories import embedding, eviction, gate
from memories.extraction import run
from memories.models import Memory
from memoryhub.jobs import job
from memoryhub.llm.registry import get_embedder
from workspaces.models import User

SWEEP = 500  # rows one sweep takes up


@job
def embed_memories(*, memory_ids: Sequence[int]) -> int:
    """Give these live memories vectors of the current model; how many got one. A failure is tried again by sweeps."""
    if get_embedder() is None:
        return 0
    rows = Memory.objects.filter(pk__in=memory_ids, deleted_at=None).select_related("workspace", "owner")
    pending = list(rows.order_by("pk"))
    done = 0
    for start in range(0, len(pending), embedding.BATCH):
        batch = pending[start : start + embedding.BATCH]
        embedded = embedding.embed_texts([(memory.content, memory.source_excerpt) for memory in batch])
        if embedded is None:
            Memory.objects.filter(pk__in=[m.pk for m in batch]).update(embedding_failed_at=timezone.now())
            continue
        for memory, vectors in zip(batch, embedded, strict=True):
            gate.store_late_vector(memory, vectors, now=timezone.now())
            done += 1
    return done


@job
def evict(*, workspace_id: int, owner_id: int | None) -> int:
    return eviction.evict(workspace_id, owner_id, now=timezone.now())


@job
def extract_turn(*, extraction_id: int) -> str:
    return run.extract(extraction_id, now=timezone.now())


@job
def rerun_extraction(*, memory_id: int, by_id: int | None) -> str:
    memory = Memory.objects.filter(pk=memory_id, deleted_at=None).first()
    by = User.objects.filter(pk=by_id).first() if by_id else None
    return run.refresh(memory, by=by, now=timezone.now()) if memory else "the memory is gone"


@job
def sweep() -> str:
    """Every minute: take up what no job is doing. The queue only hurries work; the tables know what is left."""
    extracted = run.sweep(now=timezone.now())
    embedder = get_embedder()
    missing: list[int] = []
    if embedder is not None:
        rows = Memory.objects.filter(deleted_at=None).without_vector(embedder.name)
        missing = list(rows.order_by("-pk").values_list("pk", flat=True)[:SWEEP])
        embed_memories(memory_ids=missing)
    return f"{extracted} extractions, {len(missing)} embeddings"
