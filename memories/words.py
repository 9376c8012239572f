"""The words side of recall: Postgres full text, with the memory's place as a lexeme of every row.

A GIN index over the text alone grows with the whole table; with the place in it a query touches the rows of its own
places only (docs/decisions/0003). No text can forge that lexeme: the parser splits at the colon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

CONFIG = "english"

_INDEX = f"""
UPDATE memories_memory SET search =
    to_tsvector('{CONFIG}', concat_ws(' ', key, summary, content, category, array_to_string(tags, ' ')))
    || array_to_tsvector(ARRAY['at:' || coalesce(-owner_id, workspace_id)])
WHERE id = ANY(%s)
"""  # noqa: S608  constants only

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

_COVERAGE = f"""
SELECT m.id,
       (SELECT count(*) FROM unnest(q.lexemes) l WHERE l = ANY(tsvector_to_array(m.search)))::float8
       / greatest(cardinality(q.lexemes), 1)
FROM memories_memory m,
     (SELECT tsvector_to_array(to_tsvector('{CONFIG}', %(query)s)) AS lexemes) q
WHERE m.id = ANY(%(ids)s)
"""  # noqa: S608

_CONTAINS = """
SELECT m.id, 0.0 AS rank
FROM memories_memory m
WHERE m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
  AND ((m.workspace_id = %(workspace)s AND m.owner_id IS NULL) OR m.owner_id = %(user)s)
  AND concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')) ILIKE %(pattern)s
ORDER BY m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""


def index_words(memory_ids: Sequence[int]) -> None:
    """Refresh the word index of these memories; part of every write that changes their text."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEX, [list(memory_ids)])


def match_words(query: str, params: dict[str, Any], limit: int) -> list[tuple[int, float]]:
    """(memory id, ts_rank_cd) of the live memories with any of the query's words, best first.

    ``params``: workspace and user keys, ``now``, and ``at`` (see ``at``).
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


def coverage(query: str, memory_ids: Sequence[int]) -> dict[int, float]:
    """What share (0..1) of the query's lexemes each memory contains."""
    with connection.cursor() as cursor:
        cursor.execute(_COVERAGE, {"query": query, "ids": list(memory_ids)})
        return {row[0]: float(row[1]) for row in cursor.fetchall()}


def at(places: Sequence[int]) -> str:
    """The tsquery text that confines a match to these places."""
    return " | ".join(f"'at:{place}'" for place in places)
