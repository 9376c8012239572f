"""Memories by their words alone: full text, and parts of words. How they are counted: ``memories.writing.indexed``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from memories.writing.indexed import CONFIG

HOLDS = """
  AND (m.valid_to IS NULL OR m.valid_to > %(held_at)s) AND (m.valid_from IS NULL OR m.valid_from <= %(begun_by)s)
"""
# Any of the query's words in any of the places. plainto_tsquery makes every input safe.
_MATCH = f"""
SELECT m.id, ts_rank_cd(m.search, q.words, 1) AS rank
FROM memories_memory m,
     (SELECT regexp_replace(plainto_tsquery('{CONFIG}', %(query)s)::text, ' (&|<->|<[0-9]+>) ', ' | ', 'g')::tsquery
      AS words) q
WHERE q.words <> ''::tsquery
  AND m.search @@ (%(at)s::tsquery && q.words) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
  AND m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s){HOLDS}
ORDER BY rank DESC, m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""  # noqa: S608
_CONTAINS = f"""
SELECT m.id, 0.0 AS rank
FROM memories_memory m
WHERE m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s){HOLDS}
  AND ((m.workspace_id = %(workspace)s AND m.owner_id IS NULL AND (m.agent_id IS NULL OR m.agent_id = %(agent)s))
       OR m.owner_id = %(user)s) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
  AND concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')) ILIKE %(pattern)s
ORDER BY m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""  # noqa: S608


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
