"""Vectors of memories: made with the configured embedder, stored beside its name, never compared across names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django_q.tasks import async_task

from memories.models import Memory, MemoryEmbedding
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import get_embedder

logger = logging.getLogger(__name__)
BATCH = 64
EXCERPT_SHARE = 0.5  # of the excerpt's vector in the one that recall compares; measured in docs/recall.md


@dataclass(frozen=True)
class Embedded:
    """One memory's vectors, each of shape (dimension,) and length 1."""

    model: str
    statement: Vectors  # of the text alone: what near-duplicates are found by
    search: Vectors  # averaged with the excerpt's where there is one: what recall compares


def active_model() -> str | None:
    """The name whose vectors recall compares now; None without an embedder."""
    embedder = get_embedder()
    return embedder.name if embedder else None


def embed_texts(texts: Sequence[tuple[str, str]]) -> list[Embedded] | None:
    """Embed (content, excerpt) pairs; None when there is no embedder or it fails (logged).

    Never call this inside a transaction: it may wait for a model.
    """
    embedder = get_embedder()
    if embedder is None or not texts:
        return None
    excerpts = [excerpt for _, excerpt in texts if excerpt]
    try:
        vectors = embedder.embed([content for content, _ in texts] + excerpts)
    except EmbedderError as error:
        logger.warning("Embedding %d texts failed: %s (%s)", len(texts), error, error.code)
        return None
    of_excerpts = iter(vectors[len(texts) :])
    return [
        Embedded(embedder.name, own, _mixed(own, next(of_excerpts)) if excerpt else own)
        for own, (_, excerpt) in zip(vectors, texts, strict=False)
    ]


def embed_one(content: str, excerpt: str = "") -> Embedded | None:
    embedded = embed_texts([(content, excerpt)])
    return embedded[0] if embedded else None


def _mixed(own: Vectors, excerpt: Vectors) -> Vectors:
    mixed = (1 - EXCERPT_SHARE) * own + EXCERPT_SHARE * excerpt
    length = float(np.linalg.norm(mixed))
    return (mixed / length).astype(np.float32) if length > 1e-6 else own


def store_vector(memory: Memory, embedded: Embedded) -> None:
    """Set this memory's vectors; those of another text or model are gone with it."""
    memory.embeddings.all().delete()
    MemoryEmbedding.objects.create(
        memory=memory,
        place=memory.place,
        model=embedded.model,
        dimension=len(embedded.search),
        live=memory.deleted_at is None,
        embedding=embedded.search,
        statement=None if embedded.search is embedded.statement else embedded.statement,
    )


def queue_embedding(memory_ids: Sequence[int]) -> None:
    """Embed these in the background, once the running transaction has committed."""
    ids = list(memory_ids)
    transaction.on_commit(
        lambda: async_task("memories.tasks.embed_memories", memory_ids=ids, task_name="embed memories")
    )
