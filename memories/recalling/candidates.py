"""The two arms of hybrid recall, meaning and words, in one statement; its cost follows the place, not the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import connection
from psycopg import sql

from memories.models import EmbeddingModel
from memories.models.memory import AGENT_PLACES
from memories.recalling import words
from memoryhub import prepared
from memoryhub.llm.base import Vectors

# Candidates an index is asked for: ef_search, which bounds how many rows pgvector's HNSW returns, must not be below.
EF_SEARCH = 400
BITS_OVERSAMPLED = 4  # times as many by the bits alone, ordered by the exact distance afterwards
MOST_DIMENSIONS_OF_HALFVEC_INDEX = 4000  # pgvector's limit; above, an index holds one bit a dimension

_LOOK = """
SELECT a.label, a.name, a.base_url, a.dimension,
       (SELECT json_agg(json_build_array(place, model, dimension)) FROM memories_vectorindex
        WHERE place = ANY(%(places)s::bigint[])),
       EXISTS (SELECT 1 FROM memories_placestatistics WHERE place = ANY(%(places)s::bigint[])),
       (SELECT local_only FROM workspaces_workspace WHERE id = %(workspace)s::bigint),
       (SELECT local_only FROM workspaces_workspace WHERE default_of_id = %(user)s::bigint)
FROM workspaces_membership LEFT JOIN memories_embeddingmodel a ON a.state = 'active'
WHERE workspace_id = %(workspace)s::bigint AND user_id = %(user)s::bigint
"""
# One place's nearest, in the slim table alone; without an index, exactly (docs/recall.md).
_EXACT = """
SELECT memory_id, embedding <=> %(vector)s::halfvec AS distance
FROM memories_memoryembedding
WHERE live AND model = %(model)s::text AND dimension = %(dimension)s::int AND place = ANY(%(scanned)s::bigint[])
ORDER BY distance LIMIT %(limit)s::int
"""
# Numbers and the model stand in the text and not in parameters: a partial index is used only where the planner can
# prove its condition.
_HALFVEC = """
SELECT memory_id, (embedding::halfvec({dimension})) <=> %(vector)s::halfvec({dimension}) AS distance
FROM memories_memoryembedding
WHERE live AND model = {model} AND dimension = {dimension} AND place = {place}
ORDER BY (embedding::halfvec({dimension})) <=> %(vector)s::halfvec({dimension}) LIMIT %(limit)s::int
"""
_BITS = """
SELECT memory_id, embedding <=> %(vector)s::halfvec AS distance FROM (
    SELECT memory_id, embedding FROM memories_memoryembedding
    WHERE live AND model = {model} AND dimension = {dimension} AND place = {place}
    ORDER BY (binary_quantize(embedding)::bit({dimension}))
             <~> binary_quantize(%(vector)s::halfvec({dimension}))::bit({dimension}) LIMIT %(oversampled)s::int
) by_bits ORDER BY distance LIMIT %(limit)s::int
"""
_BOTH = f"""
WITH {words.TERMS}, {words.SCORES}, near AS (
    SELECT memory_id, distance FROM ({{near}}) near ORDER BY distance LIMIT %(limit)s::int
), best AS (
    SELECT memory_id FROM scores ORDER BY score DESC, memory_id DESC LIMIT %(limit)s::int
), found AS (
    SELECT memory_id, min(distance) AS distance
    FROM (SELECT memory_id, distance FROM near UNION ALL SELECT memory_id, NULL FROM best) arms GROUP BY memory_id
)
SELECT f.memory_id, 1 - f.distance, {words.SHARE}
FROM found f LEFT JOIN scores s ON s.memory_id = f.memory_id
"""  # noqa: S608  constants only
_BOTH_UNCOUNTED = f"""
WITH {words.TERMS_UNCOUNTED}, {words.SCORES_UNCOUNTED}, near AS ({{near}})
SELECT coalesce(n.memory_id, s.memory_id), 1 - n.distance, coalesce(s.share, 0)
FROM near n FULL JOIN scores s ON s.memory_id = n.memory_id
"""  # noqa: S608  constants only


class Candidate(NamedTuple):
    """``cosine`` is None for what only its words brought in, ``words`` the share of the question's weight."""

    pk: int
    cosine: float | None
    words: float


@dataclass(frozen=True)
class Where:
    """Where a person's recall looks: the workspace, their own place and in a chat with an assistant that one's, and
    which of them have vector indexes.

    ``active`` is the model whose vectors are compared (its label, name, address and dimension alone were read); None
    where nothing was ever embedded. ``counted``: a place is large enough for counts made beforehand.
    """

    workspace: int
    user: int
    indexed: frozenset[tuple[int, str, int]] = frozenset()
    active: EmbeddingModel | None = None
    agent: int | None = None
    counted: bool = True
    local_only: bool = False  # what is here never leaves this machine
    personal: bool = True  # the person's own place is among them
    personal_alone: bool = False  # and the only one of them
    personal_stays: bool = False  # and what is in that one never leaves this machine

    @property
    def places(self) -> list[int]:
        if self.personal_alone:
            return [-self.user]
        own = [] if self.agent is None else [AGENT_PLACES + self.agent]
        return [self.workspace, *([-self.user] if self.personal else []), *own]

    def without_what_stays(self) -> Where:
        """Where to look for what leaves this machine, in a workspace that allows it."""
        return replace(self, personal=self.personal and not self.personal_stays)

    @property
    def params(self) -> dict[str, Any]:
        return {
            "workspace": self.workspace,
            "user": self.user,
            "agent": self.agent,
            "places": prepared.bigints(self.places),
        }


def look(workspace_id: int, user_id: int, agent_id: int | None = None) -> Where | None:
    """The widest that this person may look; None for somebody who is no member. One query."""
    found = prepared.rows(_LOOK, Where(workspace_id, user_id, agent=agent_id).params)
    if not found:
        return None
    label, name, base_url, dimension, indexed, counted, local_only, personal_stays = found[0]
    active = EmbeddingModel(label=label, name=name, base_url=base_url, dimension=dimension) if label else None
    return Where(
        workspace_id,
        user_id,
        frozenset((place, model, size) for place, model, size in indexed or []),
        active,
        agent_id,
        counted,
        local_only=bool(local_only),
        personal_stays=bool(personal_stays),
    )


def find_candidates(
    query: str, embedded: tuple[str, Vectors], where: Where, limit: int, *, exact: bool = False
) -> list[Candidate]:
    """The best ``limit`` of each arm, in no order, each with its words' share whichever arm brought it.

    Part of a transaction where a place has an index. ``exact``, for measuring, uses none and leaves no word out.
    """
    model, vector = embedded
    with_index = [] if exact else [p for p in where.places if (p, model, len(vector)) in where.indexed]
    given = {
        **where.params,
        "query": query,
        "model": model,
        "vector": prepared.halfvec(vector),
        "dimension": len(vector),
        "scanned": prepared.bigints(place for place in where.places if place not in with_index),
        "limit": limit,
        "oversampled": BITS_OVERSAMPLED * limit,
        "postings": words.UNBOUNDED if exact else words.POSTINGS,
    }
    arms = [_EXACT] + [_by_index(model, len(vector), place) for place in with_index]
    if with_index:
        by_bits = len(vector) > MOST_DIMENSIONS_OF_HALFVEC_INDEX
        wide = min(1000, BITS_OVERSAMPLED * limit) if by_bits else max(EF_SEARCH, min(1000, limit))
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL hnsw.ef_search = {wide}")
    both = _BOTH if where.counted or with_index or exact else _BOTH_UNCOUNTED
    found = prepared.rows(both.format(near=" UNION ALL ".join(f"({arm})" for arm in arms)), given)
    return [Candidate(pk, cosine, min(1.0, share)) for pk, cosine, share in found]


def _by_index(model: str, dimension: int, place: int) -> str:
    """The statement that uses this place's own index."""
    statement = _HALFVEC if dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    quoted = sql.Literal(model).as_string(None).replace("%", "%%")
    return statement.format(dimension=dimension, place=place, model=quoted)
