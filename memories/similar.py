"""The nearest live memories of a text: its duplicate, or the older statement it may replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memories.duplicates import may_merge
from memories.embedding import Embedded
from memories.models import Memory, MemoryEmbedding

CANDIDATES = 50  # by the vector that recall compares; the statement's own decides among them
NEAREST = 10
POSSIBLE_UPDATE = 0.85  # cosine from which two statements are about the same thing (docs/recall.md)


@dataclass(frozen=True)
class Similar:
    duplicate: Memory | None = None
    possible_update: Memory | None = None


def find_similar(
    content: str, embedded: Embedded, place: int, rows: QuerySet[Memory], *, threshold: float
) -> Similar:
    """Look among ``rows`` of ``place`` at the nearest by cosine of the statements alone.

    At or above ``threshold`` and merged by the guard: a duplicate. Near, but with another number, date, name or
    negation: a possible update, however close the vectors are.
    """
    vector = HalfVector(embedded.statement)
    vectors = MemoryEmbedding.objects.filter(
        place=place, live=True, model=embedded.model, dimension=vector.dimensions()
    )
    near = vectors.order_by(CosineDistance("embedding", vector)).values("pk")[:CANDIDATES]
    distance = CosineDistance(Coalesce("statement", "embedding"), vector)
    nearest = list(
        MemoryEmbedding.objects.filter(pk__in=list(near.values_list("pk", flat=True)))
        .annotate(distance=distance)
        .order_by("distance")
        .values_list("memory_id", "distance")[:NEAREST]
    )
    memories = rows.in_bulk([pk for pk, _ in nearest])
    return judge(
        content, [(memories[pk], 1 - apart) for pk, apart in nearest if pk in memories], threshold=threshold
    )


def judge(content: str, nearest: Sequence[tuple[Memory, float]], *, threshold: float) -> Similar:
    """What a text is to its nearest live memories, given with their cosines, best first."""
    possible_update = None
    for memory, cosine in nearest:
        if cosine < min(threshold, POSSIBLE_UPDATE):
            continue
        mergeable = may_merge(memory.content, content)
        if cosine >= threshold and mergeable:
            return Similar(duplicate=memory)
        if cosine >= POSSIBLE_UPDATE and not mergeable and possible_update is None:
            possible_update = memory
    return Similar(possible_update=possible_update)
