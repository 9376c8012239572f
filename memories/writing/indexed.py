"""What a write puts into the index and takes out of it: a memory's words and its vector.

``Memory.search`` is a tsvector of the memory's own text with its place as a lexeme, for full-text search (the
``lexical`` ranking, panel, admin): a GIN index over the text alone would grow with the whole table. No text can forge
that lexeme: the parser splits at the colon. The index holds a row for each lexeme of a memory, its excerpt's and its
date's included, with its BM25 weight (docs/decisions/0003).
"""

from __future__ import annotations

from collections.abc import Sequence

from memories.models import Memory
from memories.models.memory import PLACE
from memories.nodes.linking import link_to_named_topics
from memories.recalling.kind import MEMORIES
from memoryhub.database import queries
from workspaces.index import vectors, words
from workspaces.index.embedding import Embedded
from workspaces.index.vectors import store_vector

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
    """Its words, and the vector of its text, which is made in the background where there is none yet."""
    index_words([memory])
    if embedded is not None:
        store_vector(memory, embedded, is_new=is_new)
        return
    if not is_new:
        memory.embeddings.all().delete()
    queue_embedding([memory.pk])


def index_words(memories: Sequence[Memory]) -> None:
    """Index the words of these memories; part of every write that changes their text or brings them back."""
    ids, within = _of(memories)
    queries.rows(_INDEX, {"ids": queries.bigints(ids), "within": queries.bigints(within)})
    index_lexemes(memories)


def index_lexemes(memories: Sequence[Memory]) -> None:
    """The rows of BM25 alone, for new memories whose ``search`` was stored with them, and the links to topics named."""
    ids, within = _of(memories)
    words.index_words(MEMORIES, ids, within=within)
    link_to_named_topics(memories)


def unindex_words(memories: Sequence[Memory]) -> int:
    """Take the words of these memories out: before their text changes, and when they are deleted; how many."""
    ids, within = _of(memories)
    return words.unindex_words(MEMORIES, ids, within=within)


def _of(memories: Sequence[Memory]) -> tuple[list[int], set[int]]:
    """Their keys, and the workspaces that they lie in."""
    return [memory.pk for memory in memories], {memory.workspace_id for memory in memories}


def queue_embedding(memory_ids: Sequence[int]) -> None:
    """Embed these in the background, once the running transaction has committed."""
    vectors.queue_embedding(MEMORIES, memory_ids)
