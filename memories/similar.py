"""The nearest live memories of a text: its duplicate, or the older statement it may replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from memories.duplicates import may_merge
from memories.embedding import Embedded
from memories.models import Memory
from memoryhub import prepared

CANDIDATES = 50  # by the vector that recall compares; the statement's own decides among them
NEAREST = 10
POSSIBLE_UPDATE = 0.85  # cosine from which two statements are about the same thing (docs/recall.md)
_NEAREST = f"""
WITH near AS MATERIALIZED (
    SELECT id FROM memories_memoryembedding
    WHERE live AND place = %(place)s::bigint AND model = %(model)s::text AND dimension = %(dimension)s::int
    ORDER BY embedding <=> %(vector)s::halfvec LIMIT {CANDIDATES}
), nearest AS MATERIALIZED (
    SELECT memory_id, 1 - (coalesce(statement, embedding) <=> %(vector)s::halfvec) AS cosine
    FROM near JOIN memories_memoryembedding USING (id) ORDER BY cosine DESC LIMIT {NEAREST}
)
SELECT memory_id, cosine FROM nearest WHERE cosine >= %(least)s::float8 ORDER BY cosine DESC
"""  # noqa: S608  constants only


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
    given = {
        "place": place,
        "model": embedded.model,
        "dimension": len(embedded.statement),
        "vector": prepared.halfvec(embedded.statement),
        "least": min(threshold, POSSIBLE_UPDATE),
    }
    nearest = prepared.rows(_NEAREST, given)
    memories = rows.in_bulk([pk for pk, _ in nearest]) if nearest else {}
    return judge(
        content, [(memories[pk], cosine) for pk, cosine in nearest if pk in memories], threshold=threshold
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
