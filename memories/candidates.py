"""The two arms of hybrid recall, meaning and words, in one statement; its cost follows the place, not the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from pgvector import HalfVector

from memories import words
from memoryhub.llm.base import Vectors

# Candidates an index is asked for: ef_search, which bounds how many rows pgvector's HNSW returns, must not be below.
EF_SEARCH = 400
BITS_OVERSAMPLED = 4  # times as many by the bits alone, ordered by the exact distance afterwards
MOST_DIMENSIONS_OF_HALFVEC_INDEX = 4000  # pgvector's limit; above, an index holds one bit a dimension

_LOOK = """
SELECT EXISTS (SELECT 1 FROM workspaces_membership WHERE workspace_id = %(workspace)s AND user_id = %(user)s),
       (SELECT json_agg(json_build_array(place, model, dimension)) FROM memories_vectorindex
        WHERE place IN (%(workspace)s, %(personal)s))
"""
# One place's nearest. Numbers stand in the text and not in parameters: a partial index is used only where the planner
# can prove its condition. The slim table is scanned alone; without an index, exactly (RECALL.md).
_EXACT = """
SELECT memory_id, embedding <=> %(vector)s AS distance
FROM memories_memoryembedding
WHERE live AND model = %(model)s AND dimension = {dimension} AND place IN ({places})
ORDER BY distance LIMIT %(limit)s
"""
_HALFVEC = """
SELECT memory_id, (embedding::halfvec({dimension})) <=> %(vector)s::halfvec({dimension}) AS distance
FROM memories_memoryembedding
WHERE live AND model = %(model)s AND dimension = {dimension} AND place = {places}
ORDER BY (embedding::halfvec({dimension})) <=> %(vector)s::halfvec({dimension}) LIMIT %(limit)s
"""
_BITS = """
SELECT memory_id, embedding <=> %(vector)s AS distance FROM (
    SELECT memory_id, embedding FROM memories_memoryembedding
    WHERE live AND model = %(model)s AND dimension = {dimension} AND place = {places}
    ORDER BY (binary_quantize(embedding)::bit({dimension}))
             <~> binary_quantize(%(vector)s::halfvec({dimension}))::bit({dimension}) LIMIT %(oversampled)s
) by_bits ORDER BY distance LIMIT %(limit)s
"""
_BOTH = f"""
WITH {words.TERMS}, {words.SCORES}, near AS (
    SELECT memory_id, distance FROM ({{near}}) near ORDER BY distance LIMIT %(limit)s
), best AS (
    SELECT memory_id FROM scores ORDER BY score DESC, memory_id DESC LIMIT %(limit)s
), found AS (
    SELECT memory_id, min(distance) AS distance
    FROM (SELECT memory_id, distance FROM near UNION ALL SELECT memory_id, NULL FROM best) arms GROUP BY memory_id
)
SELECT f.memory_id, 1 - f.distance, {words.SHARE}
FROM found f LEFT JOIN scores s ON s.memory_id = f.memory_id
"""  # noqa: S608  constants only


@dataclass(frozen=True)
class Candidate:
    """``cosine`` is None for what only its words brought in, ``words`` the share of the question's weight."""

    pk: int
    cosine: float | None
    words: float


@dataclass(frozen=True)
class Where:
    """Where a person's recall looks: the workspace and their own place, and which of them have vector indexes."""

    workspace: int
    user: int
    indexed: frozenset[tuple[int, str, int]]

    @property
    def places(self) -> list[int]:
        return [self.workspace, -self.user]

    @property
    def params(self) -> dict[str, Any]:
        return {"workspace": self.workspace, "user": self.user, "places": self.places}


def look(workspace_id: int, user_id: int) -> Where | None:
    """None for somebody who is no member. One query."""
    given = {"workspace": workspace_id, "user": user_id, "personal": -user_id}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, given)
        is_member, indexed = cursor.fetchone()
    if not is_member:
        return None
    return Where(
        workspace_id, user_id, frozenset((place, model, size) for place, model, size in indexed or [])
    )


def find_candidates(
    query: str, embedded: tuple[str, Vectors], where: Where, limit: int, *, exact: bool = False
) -> list[Candidate]:
    """The best ``limit`` of each arm, in no order, each with its words' share whichever arm brought it.

    Part of a transaction where a place has an index. ``exact``, for measuring, uses none and leaves no word out.
    """
    model, vector = embedded
    near = _nearest(model, len(vector), where.places, frozenset() if exact else where.indexed)
    given = {
        **where.params,
        "query": query,
        "model": model,
        "vector": HalfVector(vector).to_text(),
        "limit": limit,
        "oversampled": BITS_OVERSAMPLED * limit,
        "postings": words.UNBOUNDED if exact else words.POSTINGS,
    }
    with connection.cursor() as cursor:
        if len(near) > 1:
            by_bits = len(vector) > MOST_DIMENSIONS_OF_HALFVEC_INDEX
            wide = min(1000, BITS_OVERSAMPLED * limit) if by_bits else max(EF_SEARCH, min(1000, limit))
            cursor.execute(f"SET LOCAL hnsw.ef_search = {wide}")
        cursor.execute(_BOTH.format(near=" UNION ALL ".join(f"({arm})" for arm in near)), given)
        return [Candidate(pk, cosine, min(1.0, share)) for pk, cosine, share in cursor.fetchall()]


def _nearest(
    model: str, dimension: int, places: Sequence[int], indexed: frozenset[tuple[int, str, int]]
) -> list[str]:
    """Statements of the meaning arm: one for the places to scan, one for each place with an index."""
    with_index = [place for place in places if (place, model, dimension) in indexed]
    scanned = [place for place in places if place not in with_index] or [0]
    by_index = _HALFVEC if dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    return [
        _EXACT.format(dimension=dimension, places=", ".join(map(str, scanned))),
        *(by_index.format(dimension=dimension, places=place) for place in with_index),
    ]
