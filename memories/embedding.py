"""Vectors of memories: made with the configured embedder, stored beside its name, never compared across names."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction
from django_q.tasks import async_task

from memories.models import Memory, MemoryEmbedding
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import get_embedder

logger = logging.getLogger(__name__)
BATCH = 64


def active_model() -> str | None:
    """The name whose vectors recall compares now; None without an embedder."""
    embedder = get_embedder()
    return embedder.name if embedder else None


def embed_or_none(texts: Sequence[str]) -> tuple[str, Vectors] | None:
    """(model, vectors of shape (n, dimension)), or None when there is no embedder or it fails (logged).

    Never call this inside a transaction: it may wait for a model.
    """
    embedder = get_embedder()
    if embedder is None or not texts:
        return None
    try:
        return embedder.name, embedder.embed(texts)
    except EmbedderError as error:
        logger.warning("Embedding %d texts failed: %s (%s)", len(texts), error, error.code)
        return None


def store_vector(memory: Memory, model: str, vector: Vectors) -> None:
    """Set this memory's vector by this model (shape (dimension,)); other texts' vectors of it are gone with it."""
    memory.embeddings.all().delete()
    MemoryEmbedding.objects.create(
        memory=memory,
        place=memory.place,
        model=model,
        dimension=len(vector),
        live=memory.deleted_at is None,
        embedding=vector,
    )


def queue_embedding(memory_ids: Sequence[int]) -> None:
    """Embed these in the background, once the running transaction has committed."""
    ids = list(memory_ids)
    transaction.on_commit(
        lambda: async_task("memories.tasks.embed_memories", memory_ids=ids, task_name="embed memories")
    )
