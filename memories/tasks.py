"""Background jobs of memories. Each job takes ids, loads the rows and makes one call. Running it twice is safe."""

import logging
from collections.abc import Sequence

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from memories.assets import ASSET_FILES
from memories.forgetting import clear, for_good, remaining_copies
from memories.models import Clearing, Memory
from memories.recalling import recall_tests
from memories.writing import eviction, extraction_jobs, vector_backfill
from memoryhub.jobs import job
from memoryhub.llm.errors import EmbedderError
from workspaces.index import embedding, reembedding
from workspaces.models import EmbeddingModel, User

logger = logging.getLogger(__name__)
SWEEP = 500  # rows per sweep


@job
def embed_memories(*, memory_ids: Sequence[int]) -> int:
    """Embed these live memories by the active model. Return the number embedded. ``sweep`` retries failures."""
    if embedding.get_embedder() is None:
        return 0
    rows = Memory.objects.filter(pk__in=memory_ids, deleted_at=None).select_related("workspace", "owner")
    rows = rows.filter(embedding.embeddable(EmbeddingModel.objects.active()))
    pending = list(rows.order_by("pk"))
    done = 0
    for start in range(0, len(pending), embedding.BATCH):
        batch = pending[start : start + embedding.BATCH]
        batch_vectors = _embed(batch)
        embedded = list(zip(batch, batch_vectors or [None] * len(batch), strict=True))
        failed = [memory.pk for memory, vectors in embedded if vectors is None]
        Memory.objects.filter(pk__in=failed).update(embedding_failed_at=timezone.now())
        if batch_vectors is None:  # the embedder is down; a later sweep retries
            break
        for memory, vectors in embedded:
            if vectors is not None:
                vector_backfill.store_late_vector(memory, vectors, now=timezone.now())
                done += 1
    return done


def _embed(memories: Sequence[Memory]) -> list[embedding.Embedded | None] | None:
    """Return the memories' vectors, None for each text that the model refuses. Return None if the embedder fails."""
    try:
        model = embedding.active_or_first()
        if model is None:
            return None
        return embedding.embed_each(model, [(memory.content, memory.source_excerpt) for memory in memories])
    except EmbedderError as error:
        logger.warning("Embedding %d memories failed: %s (%s)", len(memories), error, error.code)
        return None


@job
def evict(*, workspace_id: int, owner_id: int | None, agent_id: int | None = None) -> int:
    return eviction.evict_least_useful(workspace_id, owner_id, agent_id, now=timezone.now())


@job
def extract_turn(*, extraction_id: int) -> str:
    return extraction_jobs.extract(extraction_id, now=timezone.now())


@job
def rerun_extraction(*, memory_id: int, by_id: int | None, version: str = "") -> str:
    memory = Memory.objects.filter(pk=memory_id, deleted_at=None).first()
    by = User.objects.filter(pk=by_id).first() if by_id else None
    if memory is None:
        return "the memory is gone"
    return extraction_jobs.refresh(memory, by=by, now=timezone.now(), version=version)


@job
def recheck_memories(*, memory_ids: Sequence[int]) -> int:
    """Check memories against newer rules for credentials. Return how many were soft-deleted."""
    rows = Memory.objects.filter(pk__in=memory_ids, deleted_at=None).defer("search")
    return remaining_copies.recheck(list(rows), now=timezone.now())


@job
def sweep() -> str:
    """Run due work, including work whose job was lost. Runs every minute. Return the numbers for the job log."""
    extracted = extraction_jobs.sweep(now=timezone.now())
    if reembedding.has_work():
        reembedding.queue()
    missing: list[int] = []
    if (active := embedding.active_model()) is not None:
        rows = Memory.objects.filter(deleted_at=None).without_vector(active)
        rows = rows.filter(embedding.embeddable(EmbeddingModel.objects.active()))
        untried_first = rows.order_by(F("embedding_failed_at").asc(nulls_first=True), "-pk")
        missing = list(untried_first.values_list("pk", flat=True)[:SWEEP])
        embed_memories(memory_ids=missing)
    purged = for_good.purge(now=timezone.now(), seconds=settings.JOB_TIMEOUT / 6)
    cleared = clear.sweep(seconds=settings.JOB_TIMEOUT / 30)
    return f"{extracted} extractions, {len(missing)} embeddings, {cleared} clearings, {purged} purged"


@job
def sweep_files() -> str:
    """Remove stored files that have no row because of a crash. Runs every hour."""
    return f"{ASSET_FILES.sweep(now=timezone.now())} files without a row removed"


@job
def ask_recall_questions() -> str:
    """Run the recall questions of workspaces whose memories have changed. Runs every five minutes."""
    run_count = recall_tests.run_changed(now=timezone.now(), seconds=settings.JOB_TIMEOUT / 3)
    return f"{run_count} questions asked"


@job
def clear_memories(*, clearing_id: int) -> str:
    """Continue a clearing, or the undo of one."""
    rows = Clearing.objects.select_related("workspace", "agent", "by")
    clearing = rows.filter(pk=clearing_id).first()
    if clearing is None:
        return "gone"
    clear.work_on(clearing, seconds=settings.JOB_TIMEOUT / 3)
    return f"{clearing.status}: {clearing.done} of {clearing.total}"
