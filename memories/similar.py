"""The nearest live memories of a text: its duplicate, or the older statement it may replace."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memories.duplicates import may_merge
from memories.models import Memory
from memoryhub.llm.base import Vectors

NEAREST = 10
POSSIBLE_UPDATE = (
    0.85  # cosine from which two statements are about the same thing (RECALL.md: near-duplicates)
)


@dataclass(frozen=True)
class Similar:
    duplicate: Memory | None = None
    possible_update: Memory | None = None


def find_similar(
    content: str, vector: Vectors, model: str, rows: QuerySet[Memory], *, threshold: float
) -> Similar:
    """Look among ``rows`` at the nearest by cosine. At or above ``threshold`` and merged by the guard: a duplicate.

    Near, but with another number, date, name or negation: a possible update, however close the vectors are.
    """
    nearest = (
        rows.filter(embeddings__model=model, embeddings__dimension=len(vector), embeddings__live=True)
        .annotate(distance=CosineDistance("embeddings__embedding", HalfVector(vector)))
        .order_by("distance")[:NEAREST]
    )
    possible_update = None
    for memory in nearest:
        cosine = 1 - memory.distance
        mergeable = may_merge(memory.content, content)
        if cosine >= threshold and mergeable:
            return Similar(duplicate=memory)
        if cosine >= POSSIBLE_UPDATE and not mergeable and possible_update is None:
            possible_update = memory
    return Similar(possible_update=possible_update)
