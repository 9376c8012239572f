"""Indexing of memories, as passages of the search index and for full-text search.

``Memory.search`` is a tsvector of the memory's own text. It also contains the scope as a lexeme, without which queries
on the GIN index would become slower as the whole table grows, and which no text can contain, because the parser splits
at the colon. The BM25 index has a weighted row for each lexeme of text, excerpt and date (docs/decisions/0003).
"""

from collections.abc import Sequence
from typing import Any

from django_q.tasks import async_task

from memories.models import Memory
from memories.models.memory import MEMORY, PLACE, live_sql
from memories.topics import link_to_named_topics
from memoryhub.database import queries
from memoryhub.database.queries import current_connection
from workspaces.index import embedding, hybrid_search
from workspaces.index.embedding import Embedded, store_vector
from workspaces.models.index import Kind

MEMORIES = Kind(
    number=MEMORY,
    name="memory",
    model=Memory,
    place=PLACE,
    words="memories_counted_words",
    here="workspace_id = %(workspace)s::bigint",
    own="owner_id = %(user)s::bigint AND workspace_id <> %(workspace)s::bigint "
    "AND -(%(user)s::bigint) = ANY(%(places)s::bigint[]) AND workspace_id = ANY(%(workspaces)s::bigint[])",
    excerpt="source_excerpt",
    queue=lambda ids: async_task("memories.tasks.embed_memories", memory_ids=ids, task_name="embed memories"),
)


CONFIG = "english"
# Memory.search as an expression over the row's own columns.
SEARCH = f"""
    to_tsvector('{CONFIG}', concat_ws(' ', key, summary, content, category, array_to_string(tags, ' ')))
    || array_to_tsvector(ARRAY['at:' || {PLACE}])
"""
_INDEX = f"""
UPDATE memories_memory SET search = {SEARCH}
WHERE id = ANY(%(ids)s::bigint[]) AND workspace_id = ANY(%(within)s::bigint[])
"""  # noqa: S608  constants only


def put_in_index(memory: Memory, embedded: Embedded | None, *, is_new: bool = False) -> None:
    """Index a memory's words and store its vector. Without a vector, queue a job that embeds the memory."""
    index_words([memory])
    if embedded is not None:
        store_vector(memory, embedded, is_new=is_new)
        return
    if not is_new:
        memory.embeddings.all().delete()
    queue_embedding([memory.pk])


def index_words(memories: Sequence[Memory]) -> None:
    """Index the words of these memories. Call this after every write that changes their text or restores them."""
    ids, within = _of(memories)
    queries.rows(_INDEX, {"ids": ids, "within": within})
    index_lexemes(memories)


def index_lexemes(memories: Sequence[Memory]) -> None:
    """Add memories whose ``search`` is stored to the BM25 index, and link them to topics that they name."""
    ids, within = _of(memories)
    hybrid_search.index_words(MEMORIES, ids, within=within)
    link_to_named_topics(memories)


def unindex_words(memories: Sequence[Memory]) -> int:
    """Remove memories from the BM25 index, before their text changes or they are deleted. Return the number of rows."""
    ids, within = _of(memories)
    return hybrid_search.unindex_words(MEMORIES, ids, within=within)


def _of(memories: Sequence[Memory]) -> tuple[list[int], set[int]]:
    return [memory.pk for memory in memories], {memory.workspace_id for memory in memories}


def queue_embedding(memory_ids: Sequence[int]) -> None:
    embedding.queue_embedding(MEMORIES, memory_ids)


HOLDS = """
  AND (m.valid_to IS NULL OR m.valid_to > %(held_at)s) AND (m.valid_from IS NULL OR m.valid_from <= %(begun_by)s)
"""
# Matches any word of the query in any of the scopes. plainto_tsquery makes every input safe.
_MATCH = f"""
SELECT m.id, ts_rank_cd(m.search, q.words, 1) AS rank
FROM memories_memory m,
     (SELECT regexp_replace(plainto_tsquery('{CONFIG}', %(query)s)::text, ' (&|<->|<[0-9]+>) ', ' | ', 'g')::tsquery
      AS words) q
WHERE q.words <> ''::tsquery
  AND m.search @@ (%(at)s::tsquery && q.words) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
  AND {live_sql()}{HOLDS}
ORDER BY rank DESC, m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""  # noqa: S608
_CONTAINS = f"""
SELECT m.id, 0.0 AS rank
FROM memories_memory m
WHERE {live_sql()}{HOLDS}
  AND ((m.workspace_id = %(workspace)s AND m.owner_id IS NULL AND (m.agent_id IS NULL OR m.agent_id = %(agent)s))
       OR m.owner_id = %(user)s) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
  AND concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')) ILIKE %(pattern)s
ORDER BY m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC
LIMIT %(limit)s
"""  # noqa: S608


def match_words(query: str, params: dict[str, Any], limit: int) -> list[tuple[int, float]]:
    """Return live memories that contain any of the query's words, as (primary key, ``ts_rank_cd``), best first."""
    at = " | ".join(f"'at:{place}'" for place in params["places"])
    with current_connection().cursor() as cursor:
        cursor.execute(_MATCH, {**params, "at": at, "query": query, "limit": limit})
        return [(row[0], float(row[1])) for row in cursor.fetchall()]


def match_contains(query: str, params: dict[str, Any], limit: int) -> list[tuple[int, float]]:
    """Return live memories that contain the whole query, as (primary key, 0). ``%``, ``_`` and ``\\`` are literal."""
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    with current_connection().cursor() as cursor:
        cursor.execute(_CONTAINS, {**params, "pattern": f"%{escaped}%", "limit": limit})
        return [(row[0], 0.0) for row in cursor.fetchall()]
