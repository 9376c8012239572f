"""Vectors that come later than their passages, for kinds without a job of their own."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction

from memoryhub.llm.errors import EmbedderError
from workspaces.index import embedding, reembedding
from workspaces.index.kinds import Kind, kinds
from workspaces.models import EmbeddingModel

logger = logging.getLogger(__name__)
SWEEP = 500  # passages of a kind that one look takes up


def embed_passages(kind: Kind, refs: Sequence[int]) -> int:
    """Give these vectors of the active model, but for those that have one; how many got one.

    What fails is tried again by ``fill_gaps``.
    """
    done = 0
    try:
        model = embedding.active_or_first()
        if model is None:
            return 0
        for start in range(0, len(refs), embedding.BATCH):
            rows = list(kind.rows().filter(pk__in=refs[start : start + embedding.BATCH]))
            wanted = reembedding.missing(model, kind, {row.place for row in rows})
            batch = list(wanted.filter(pk__in=[row.pk for row in rows]).order_by("pk"))
            if not batch:
                continue
            made = embedding.embed_each(model, [kind.text_of(row) for row in batch])
            pairs = [(row, vectors) for row, vectors in zip(batch, made, strict=True) if vectors is not None]
            with transaction.atomic():
                done += reembedding.store_unchanged(model.label, kind, pairs)
    except EmbedderError as error:
        logger.warning("Embedding passages (%s) failed: %s (%s)", kind.name, error, error.code)
    return done


def fill_gaps() -> int:
    """Embed what has no vector of the active model and no job does; how many got one."""
    active = EmbeddingModel.objects.active()
    if active is None:
        return 0
    return sum(
        embed_passages(kind, list(reembedding.missing(active, kind).values_list("pk", flat=True)[:SWEEP]))
        for kind in kinds()
        if kind.queue is None
    )
