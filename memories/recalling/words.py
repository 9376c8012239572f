"""The words side of recall: Postgres lexemes, kept per place, and BM25 over them.

Two indexes of the same words. ``Memory.search`` is a tsvector of the memory's own text with its place as a lexeme, for
full-text search (the ``lexical`` ranking, panel, admin): a GIN index over the text alone would grow with the whole
table. No text can forge that lexeme: the parser splits at the colon. ``MemoryWord`` holds a row for each lexeme of a
memory, its excerpt's and its date's included, with its BM25 weight (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from memories.models.memory import PLACE
from memoryhub import prepared

CONFIG = "english"
# BM25 with k1 = 1.2, b = 0.3 and a fixed typical length, so that a weight never changes by what others say.
K1, B, TYPICAL_LENGTH = 1.2, 0.3, 60.0
COUNTED_AT_MOST = 20_001  # of a place's memories: beyond, the idf hardly moves
POSTINGS = 6_000  # memories that a query's words may bring in; the rarest words go first
UNBOUNDED = 10**9

# Memory.search as an expression over the row's own columns.
SEARCH = f"""
    to_tsvector('{CONFIG}', concat_ws(' ', key, summary, content, category, array_to_string(tags, ' ')))
    || array_to_tsvector(ARRAY['at:' || {PLACE}])
"""
_INDEX = f"UPDATE memories_memory SET search = {SEARCH} WHERE id = ANY(%(ids)s::bigint[])"  # noqa: S608  constants only
_INDEX_WORDS = f"""
INSERT INTO memories_memoryword (place, lexeme, memory_id, weight)
SELECT {PLACE}, w.lexeme, m.id,
       w.count * {1 + K1} / (w.count + {K1} * ({1 - B} + {B} * w.length / {TYPICAL_LENGTH}))
FROM memories_memory m,
     LATERAL (SELECT lexeme, count, sum(count) OVER () AS length FROM memories_counted_words(m)) w
WHERE m.id = ANY(%(ids)s::bigint[]) AND m.deleted_at IS NULL
ON CONFLICT (place, lexeme, memory_id) DO UPDATE SET weight = excluded.weight
"""  # noqa: S608
_UNINDEX_WORDS = f"""
DELETE FROM memories_memoryword w USING memories_memory m
WHERE m.id = ANY(%(ids)s::bigint[]) AND w.place = {PLACE} AND w.memory_id = m.id
  AND w.lexeme IN (SELECT lexeme FROM memories_counted_words(m))
RETURNING 1
"""  # noqa: S608

# The query's lexemes that stand in at most half of the memories, with their idf. Common words of large places are
# counted beforehand (recalling.indexes), the others here. ``driving`` are the rarest, as long as they bring few enough
# memories with them: those are ranked; the others only add to what they and the vectors found. The memories of its
# assistants are counted with a workspace's: to leave them out would cost more than the idf moves.
_HERE = f"""(SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE deleted_at IS NULL
    AND workspace_id = %(workspace)s::bigint LIMIT {COUNTED_AT_MOST}) counted)"""  # noqa: S608
_OWN = f"""(SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE deleted_at IS NULL
    AND owner_id = %(user)s::bigint AND workspace_id <> %(workspace)s::bigint
    AND -(%(user)s::bigint) = ANY(%(places)s::bigint[]) LIMIT {COUNTED_AT_MOST}) counted)"""  # noqa: S608
TERMS = f"""
n AS MATERIALIZED (
    SELECT greatest(1, coalesce(
        (SELECT memory_count FROM memories_placestatistics WHERE place = %(workspace)s::bigint), {_HERE}
    ) + coalesce(
        (SELECT memory_count FROM memories_placestatistics
         WHERE place = -(%(user)s::bigint) AND place = ANY(%(places)s::bigint[])), {_OWN}
    ))::float8 AS memories
), frequencies AS (
    SELECT q.lexeme, sum(coalesce(c.memory_count, (
        SELECT count(*) FROM memories_memoryword w WHERE w.place = p.place AND w.lexeme = q.lexeme
    )))::float8 AS df
    FROM unnest(tsvector_to_array(to_tsvector('{CONFIG}', %(query)s::text))) q(lexeme)
    CROSS JOIN unnest(%(places)s::bigint[]) p(place)
    LEFT JOIN memories_commonword c ON c.place = p.place AND c.lexeme = q.lexeme
    GROUP BY q.lexeme
), terms AS MATERIALIZED (
    SELECT lexeme, ln(1 + (greatest(memories, df) - df + 0.5) / (df + 0.5)) AS idf,
           sum(df) OVER (ORDER BY df, lexeme) <= %(postings)s::bigint AS driving
    FROM frequencies, n WHERE df <= greatest(3, memories / 2)
)"""  # noqa: S608  constants only
SCORES = """
scores AS MATERIALIZED (
    SELECT w.memory_id, sum(t.idf * w.weight) AS score
    FROM terms t JOIN memories_memoryword w ON w.place = ANY(%(places)s::bigint[]) AND w.lexeme = t.lexeme
    WHERE t.driving GROUP BY w.memory_id
)"""
# The score of a row ``f`` with its ``scores`` s, by what the sum would be for a memory that says nothing else: a share
# from 0 to about 1, so that scores of different queries compare.
SHARE = """
coalesce((coalesce(s.score, 0) + coalesce((
    SELECT sum(t.idf * w.weight)
    FROM terms t JOIN memories_memoryword w ON w.lexeme = t.lexeme AND w.place = ANY(%(places)s::bigint[])
    WHERE NOT t.driving AND w.memory_id = f.memory_id
), 0)) / (SELECT nullif(sum(idf), 0) FROM terms), 0)
"""
# The same for places without counts, which are small: every word drives, and the simpler statement is soon planned.
TERMS_UNCOUNTED = f"""
n AS MATERIALIZED (SELECT greatest(1, {_HERE} + {_OWN})::float8 AS memories), terms AS MATERIALIZED (
    SELECT lexeme, ln(1 + (greatest(memories, df) - df + 0.5) / (df + 0.5)) AS idf
    FROM n, (SELECT q.lexeme, (SELECT count(*) FROM memories_memoryword w
                               WHERE w.place = ANY(%(places)s::bigint[]) AND w.lexeme = q.lexeme)::float8 AS df
             FROM unnest(tsvector_to_array(to_tsvector('{CONFIG}', %(query)s::text))) q(lexeme)) frequencies
    WHERE df <= greatest(3, memories / 2)
)"""  # noqa: S608
SCORES_UNCOUNTED = """
scores AS MATERIALIZED (
    SELECT w.memory_id, sum(t.idf * w.weight) / (SELECT nullif(sum(idf), 0) FROM terms) AS share
    FROM terms t JOIN memories_memoryword w ON w.place = ANY(%(places)s::bigint[]) AND w.lexeme = t.lexeme
    GROUP BY w.memory_id
)"""
_BM25 = f"""
WITH {TERMS}, {SCORES}
SELECT f.memory_id, {SHARE} AS share
FROM (SELECT memory_id, score FROM scores ORDER BY score DESC, memory_id DESC LIMIT %(limit)s::int) f
JOIN scores s ON s.memory_id = f.memory_id
ORDER BY share DESC, f.memory_id DESC
"""  # noqa: S608

# Any of the query's words in any of the places. plainto_tsquery makes every input safe.
_MATCH = f"""
SELECT m.id, ts_rank_cd(m.search, q.words, 1) AS rank
FROM memories_memory m,
     (SELECT regexp_replace(plainto_tsquery('{CONFIG}', %(query)s)::text, ' (&|<->|<[0-9]+>) ', ' | ', 'g')::tsquery
      AS words) q
WHERE q.words <> ''::tsquery
  AND m.search @@ (%(at)s::tsquery && q.words)
  AND m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
ORDER BY rank DESC, m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""  # noqa: S608
_CONTAINS = """
SELECT m.id, 0.0 AS rank
FROM memories_memory m
WHERE m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
  AND ((m.workspace_id = %(workspace)s AND m.owner_id IS NULL AND (m.agent_id IS NULL OR m.agent_id = %(agent)s))
       OR m.owner_id = %(user)s)
  AND concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')) ILIKE %(pattern)s
ORDER BY m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""


def index_words(memory_ids: Sequence[int]) -> None:
    """Index the words of these memories; part of every write that changes their text or brings them back."""
    prepared.rows(_INDEX, {"ids": prepared.bigints(memory_ids)})
    index_lexemes(memory_ids)


def index_lexemes(memory_ids: Sequence[int]) -> None:
    """The rows of BM25 alone: for new memories whose ``search`` was stored with them."""
    prepared.rows(_INDEX_WORDS, {"ids": prepared.bigints(memory_ids)})


def unindex_words(memory_ids: Sequence[int]) -> int:
    """Take the words of these memories out: before their text changes, and when they are deleted; how many."""
    return len(prepared.rows(_UNINDEX_WORDS, {"ids": prepared.bigints(memory_ids)}))


def bm25(query: str, params: dict[str, Any], limit: int) -> dict[int, float]:
    """By memory id how much of the query's weight in words it carries, 0 to about 1; the best ``limit``.

    BM25 divided by the sum of the query's idf, so that scores of different queries compare. ``params``: workspace,
    user and places.
    """
    given = {**params, "query": query, "limit": limit, "postings": POSTINGS}
    return {pk: min(1.0, float(share)) for pk, share in prepared.rows(_BM25, given)}


def match_words(query: str, params: dict[str, Any], limit: int) -> list[tuple[int, float]]:
    """(memory id, ts_rank_cd) of the live memories with any of the query's words, best first.

    ``params``: ``now`` and ``at`` (see ``at``).
    """
    with connection.cursor() as cursor:
        cursor.execute(_MATCH, {**params, "query": query, "limit": limit})
        return [(row[0], float(row[1])) for row in cursor.fetchall()]


def match_contains(query: str, params: dict[str, Any], limit: int) -> list[tuple[int, float]]:
    """Like ``match_words`` for parts of words; ``%``, ``_`` and ``\\`` are literal."""
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    with connection.cursor() as cursor:
        cursor.execute(_CONTAINS, {**params, "pattern": f"%{escaped}%", "limit": limit})
        return [(row[0], 0.0) for row in cursor.fetchall()]


def at(places: Sequence[int]) -> str:
    """The tsquery text that confines a match to these places."""
    return " | ".join(f"'at:{place}'" for place in places)
