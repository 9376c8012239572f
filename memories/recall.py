"""Recall: the memories that matter to a query. Pages, API, tools and turns all ask here."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from pgvector import HalfVector

from memories import words
from memories.models import Memory
from memories.ranking import RANKINGS, hybrid_parts, longterm_parts, recency
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import get_embedder
from workspaces.access import role_in
from workspaces.models import User, Workspace

logger = logging.getLogger(__name__)
CANDIDATES = 100  # from each arm; the fused order is made of their union
MAX_LIMIT = 50
QUERY_LENGTH = 4000  # what of a query is embedded and matched

# Exact cosine over one workspace and the asker's personal rows, in the slim table alone (RECALL.md).
_NEAREST = """
SELECT e.memory_id, 1 - (e.embedding <=> %(vector)s) AS cosine
FROM memories_memoryembedding e
WHERE e.live AND e.model = %(model)s AND e.dimension = %(dimension)s
  AND e.place = ANY(%(places)s)
ORDER BY e.embedding <=> %(vector)s
LIMIT %(limit)s
"""
# The long-term score over every vector, not over a pre-cut by cosine: old and important ones would be lost.
_LONGTERM = """
SELECT e.memory_id, 1 - (e.embedding <=> %(vector)s) AS cosine
FROM memories_memoryembedding e JOIN memories_memory m ON m.id = e.memory_id
WHERE e.live AND e.model = %(model)s AND e.dimension = %(dimension)s
  AND e.place = ANY(%(places)s)
  AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
ORDER BY 0.7 * (1 - (e.embedding <=> %(vector)s))
  + 0.2 * power(0.5::float8, greatest(0, date_part('epoch', %(now)s - greatest(m.created_at, m.last_accessed_at)))
                             / 2592000.0)
  + 0.1 * m.importance DESC, m.id DESC
LIMIT %(limit)s
"""
_BUMP = """
UPDATE memories_memory SET last_accessed_at = %s WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%s) AND deleted_at IS NULL FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True)
class Recalled:
    memory: Memory
    score: float
    parts: dict[str, float]


@dataclass(frozen=True)
class Recall:
    items: list[Recalled] = field(default_factory=list)
    ranking: str = "hybrid"
    degraded: str = ""  # why recall fell back to words, empty when it did not


def recall(
    query: str,
    workspace: Workspace,
    user: User,
    limit: int = 5,
    offset: int = 0,
    ranking: str = "hybrid",
    threshold: float | None = None,
    now: datetime | None = None,
) -> Recall:
    """The ranked memories this person may see here, each with its score and the score's parts.

    A blank query or a limit below 1 gives nothing and asks no embedder; ``limit`` is capped at 50. Scores below
    ``threshold`` are dropped (``semantic`` has the configured one by default, the others none). If the embedder or
    the vector search fails, words answer, and ``degraded`` says why. NotFound for a stranger, Invalid for an
    unknown ranking. Recalled rows count as accessed; that neither blocks nor resurrects one.
    """
    if ranking not in RANKINGS:
        raise Invalid(fields={"ranking": f"must be one of {', '.join(RANKINGS)}"})
    if role_in(user, workspace) is None:
        raise NotFound("There is no such workspace, or it is not yours to see.")
    query = query.replace("\x00", " ").strip()[:QUERY_LENGTH]
    if not query or limit < 1:
        return Recall(ranking=ranking)
    now = now or timezone.now()
    if threshold is None and ranking == "semantic":
        threshold = settings.RECALL_THRESHOLD
    search = _Search(query, workspace, user, now, depth=max(CANDIDATES, offset + min(limit, MAX_LIMIT)))
    items, degraded = search.ranked(ranking)
    if threshold is not None and (
        ranking == "hybrid" or not degraded
    ):  # a cosine's threshold says nothing of words
        items = [item for item in items if item.score >= threshold]
    items = items[offset : offset + min(limit, MAX_LIMIT)]
    _bump([item.memory.pk for item in items], now)
    return Recall(items, ranking, degraded)


class _Search:
    """One query against one workspace: its two arms, meaning and words, and their union."""

    def __init__(self, query: str, workspace: Workspace, user: User, now: datetime, depth: int) -> None:
        self.query, self.workspace, self.user, self.now, self.depth = query, workspace, user, now, depth
        places = [workspace.pk, -user.pk]  # what is shared here, and what is the asker's own
        self.params: dict[str, Any] = {
            "workspace": workspace.pk,
            "user": user.pk,
            "now": now,
            "places": places,
            "at": words.at(places),
        }

    def ranked(self, ranking: str) -> tuple[list[Recalled], str]:
        if ranking == "lexical":
            return self._lexical(), ""
        try:
            embedded = self._embed()
            if embedded is None:
                return self._fused(
                    {}
                ) if ranking == "hybrid" else self._lexical(), "no embedder is configured"
            cosines = self._cosines(_LONGTERM if ranking == "longterm" else _NEAREST, *embedded)
        except EmbedderError as error:
            logger.warning("Recall fell back to words: %s", error.code)
            return self._fused({}) if ranking == "hybrid" else self._lexical(), "the embedder did not answer"
        except DatabaseError:
            logger.exception("Vector search failed; recall fell back to words")
            return self._fused({}) if ranking == "hybrid" else self._lexical(), "the vector search failed"
        if ranking == "semantic":
            return self._by_cosine(cosines), ""
        if ranking == "longterm":
            return self._longterm(cosines), ""
        return self._fused(cosines), ""

    def _embed(self) -> tuple[str, Vectors] | None:
        embedder = get_embedder()
        return (embedder.name, embedder.embed([self.query])[0]) if embedder else None

    def _cosines(self, sql: str, model: str, vector: Vectors) -> dict[int, float]:
        params = {**self.params, "model": model, "dimension": len(vector), "limit": self.depth}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql, {**params, "vector": HalfVector(vector).to_text()})
            return {row[0]: float(row[1]) for row in cursor.fetchall()}

    def _load(self, ids: list[int]) -> dict[int, Memory]:
        """Only rows the asker may see, live and not expired, whatever the arms found."""
        rows = Memory.objects.recallable_in(self.workspace, self.user).live(self.now).listed()
        return rows.defer("search", "source_excerpt").in_bulk(ids)

    def _fused(self, cosines: dict[int, float]) -> list[Recalled]:
        matched = words.match_words(self.query, self.params, self.depth)
        if not cosines and not matched:
            return self._lexical()
        ids = list({*cosines, *(pk for pk, _ in matched)})
        covered = words.coverage(self.query, ids)
        items = []
        for pk, memory in self._load(ids).items():
            recent = recency(memory.created_at, memory.last_accessed_at, self.now)
            items.append(
                _scored(
                    memory, hybrid_parts(cosines.get(pk), covered.get(pk, 0.0), recent, memory.importance)
                )
            )
        return _best_first(items)

    def _by_cosine(self, cosines: dict[int, float]) -> list[Recalled]:
        loaded = self._load(list(cosines))
        return _best_first([_scored(memory, {"meaning": cosines[pk]}) for pk, memory in loaded.items()])

    def _longterm(self, cosines: dict[int, float]) -> list[Recalled]:
        items = []
        for pk, memory in self._load(list(cosines)).items():
            recent = recency(memory.created_at, memory.last_accessed_at, self.now)
            items.append(_scored(memory, longterm_parts(cosines[pk], recent, memory.importance)))
        return _best_first(items)

    def _lexical(self) -> list[Recalled]:
        """Full text, then parts of words where it finds nothing; in the order Postgres gave."""
        matched = words.match_words(self.query, self.params, self.depth) or words.match_contains(
            self.query, self.params, self.depth
        )
        loaded = self._load([pk for pk, _ in matched])
        return [_scored(loaded[pk], {"words": rank}) for pk, rank in matched if pk in loaded]


def _scored(memory: Memory, parts: dict[str, float]) -> Recalled:
    return Recalled(memory, sum(parts.values()), parts)


def _best_first(items: list[Recalled]) -> list[Recalled]:
    return sorted(items, key=lambda item: (-item.score, -item.memory.pk))


def _bump(ids: list[int], now: datetime) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_BUMP, [now, ids])
