"""Recall: the memories that matter to a query. Pages, API, tools and turns all ask here."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any

import numpy as np
from django.db import DatabaseError, connection, transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone
from pgvector import HalfVector

from memories import embedding, words
from memories.candidates import Candidate, Where, find_candidates, look
from memories.models import Memory
from memories.ranking import (
    RANKINGS,
    WEIGHTS,
    WORDS_AS_MEANING,
    Weights,
    hybrid_parts,
    longterm_parts,
    recency,
)
from memories.signals import Question, asks, mentions_number, mentions_time, read_question, subject
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from workspaces.models import User, Workspace

logger = logging.getLogger(__name__)
BUMPED_EVERY = timedelta(minutes=1)
CANDIDATES = 200  # from each arm; the fused order is made of their union
MAX_LIMIT = 50
QUERY_LENGTH = 4000  # what of a query is embedded and matched
SEMANTIC_THRESHOLD = 0.30  # cosine below which the semantic ranking drops, unless the caller says another

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
# What the fusion asks about a candidate. Live, not expired and in one of the asker's places, whatever the arms found.
_FEATURES = """
SELECT m.id, left(m.content, 500), coalesce(u.username, ''), m.created_at, m.importance{cosine}
FROM memories_memory m LEFT JOIN workspaces_user u ON u.id = m.author_id
WHERE m.id = ANY(%(ids)s) AND m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
  AND coalesce(-m.owner_id, m.workspace_id) = ANY(%(places)s)
"""
# Of candidates that only their words brought in.
_COSINE = """,
    (SELECT 1 - (e.embedding <=> %(vector)s) FROM memories_memoryembedding e
     WHERE e.memory_id = m.id AND m.id = ANY(%(missing)s) AND e.live AND e.model = %(model)s
       AND e.dimension = %(dimension)s)"""
# Rows that somebody holds are passed over, and so are those accessed within the minute: nothing depends on seconds.
_BUMP = """
UPDATE memories_memory SET last_accessed_at = %(now)s WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%(ids)s) AND deleted_at IS NULL
      AND (last_accessed_at IS NULL OR last_accessed_at < %(now)s - interval '1 minute') FOR UPDATE SKIP LOCKED)
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


Scored = tuple[int, dict[str, float]]  # a memory's key and the parts of its score


def recall(
    query: str,
    workspace: Workspace,
    user: User,
    limit: int = 5,
    offset: int = 0,
    ranking: str = "hybrid",
    threshold: float | None = None,
    now: datetime | None = None,
    weights: Weights = WEIGHTS,
) -> Recall:
    """The ranked memories this person may see here, each with its score and the score's parts.

    A blank query or a limit below 1 gives nothing and asks no embedder; ``limit`` is capped at 50. Scores below
    ``threshold`` are dropped (``semantic`` has the configured one by default, the others none). If the embedder or
    the vector search fails, words answer, and ``degraded`` says why. NotFound for a stranger, Invalid for an
    unknown ranking. Recalled rows count as accessed; that neither blocks nor resurrects one. ``weights`` are the
    hybrid's; others than the defaults are for measuring.
    """
    if ranking not in RANKINGS:
        raise Invalid(fields={"ranking": f"must be one of {', '.join(RANKINGS)}"})
    where = look(workspace.pk, user.pk)
    if where is None:
        raise NotFound("There is no such workspace, or it is not yours to see.")
    query = query.replace("\x00", " ").strip()[:QUERY_LENGTH]
    if not query or limit < 1:
        return Recall(ranking=ranking)
    now = now or timezone.now()
    if threshold is None and ranking == "semantic":
        threshold = SEMANTIC_THRESHOLD
    limit = min(limit, MAX_LIMIT)
    search = _Search(query, workspace, user, where, now, offset + limit, weights)
    scored, degraded = search.ranked(ranking)
    if threshold is not None and (
        ranking == "hybrid" or not degraded
    ):  # a cosine's threshold says nothing of words
        scored = [(pk, parts) for pk, parts in scored if sum(parts.values()) >= threshold]
    items = search.load(scored[offset : offset + limit])
    _bump(
        [
            item.memory.pk
            for item in items
            if item.memory.last_accessed_at is None or item.memory.last_accessed_at < now - BUMPED_EVERY
        ],
        now,
    )
    return Recall(items, ranking, degraded)


class _Search:
    """One query against one workspace: its two arms, meaning and words, and their union."""

    def __init__(
        self,
        query: str,
        workspace: Workspace,
        user: User,
        where: Where,
        now: datetime,
        wanted: int,
        weights: Weights,
    ) -> None:
        self.query, self.workspace, self.user, self.now = query, workspace, user, now
        self.where, self.wanted, self.weights = where, wanted, weights
        self.depth = max(CANDIDATES, wanted)
        self.params: dict[str, Any] = {**where.params, "now": now, "at": words.at(where.places)}

    def ranked(self, ranking: str) -> tuple[list[Scored], str]:
        """Keys with the parts of their scores, best first, and why it fell back to words, if it did."""
        if ranking == "lexical":
            return self._lexical(), ""
        question = read_question(self.query, self.now)
        try:
            embedded = self._embed(question if ranking == "hybrid" else None)
            if embedded is None:
                return self._without_vectors(ranking, question), "no embedder is configured"
            with self._guarded():
                if ranking == "hybrid":
                    return self._hybrid(question, embedded), ""
                return (self._longterm if ranking == "longterm" else self._semantic)(embedded), ""
        except EmbedderError as error:
            logger.warning("Recall fell back to words: %s", error.code)
            return self._without_vectors(ranking, question), embedding.why_words(error)
        except DatabaseError:
            logger.exception("Vector search failed; recall fell back to words")
            return self._without_vectors(ranking, question), "the vector search failed"

    def _guarded(self) -> AbstractContextManager[object]:
        """A transaction where one is needed: an index is tuned in one, and a failure must not spoil the caller's."""
        needed = self.where.indexed or connection.in_atomic_block
        return transaction.atomic() if needed else nullcontext()

    def load(self, scored: list[Scored]) -> list[Recalled]:
        """The memories themselves, in this order; once more only rows the asker may see.

        Joins are left out where the answer is at hand: what Django makes of wide rows costs more than finding them.
        """
        rows = Memory.objects.live(self.now).select_related("author").defer("search", "source_excerpt")
        loaded = rows.in_bulk([pk for pk, _ in scored])
        items = [(loaded[pk], parts) for pk, parts in scored if pk in loaded]
        items = [(memory, parts) for memory, parts in items if memory.place in self.where.places]
        for memory, _ in items:
            if memory.workspace_id == self.workspace.pk:
                memory.workspace = self.workspace
        prefetch_related_objects(
            [memory for memory, _ in items if memory.workspace_id != self.workspace.pk], "workspace"
        )
        prefetch_related_objects([memory for memory, _ in items if memory.may_replace_id], "may_replace")
        return [Recalled(memory, sum(parts.values()), parts) for memory, parts in items]

    def _embed(self, question: Question | None) -> tuple[str, Vectors] | None:
        """The active model's label and the query's vector: for a question, the weighted mean of it and of its gist."""
        share = self.weights.gist
        alone = question is None or question.gist == question.text or not share
        texts = [self.query] if question is None or alone else [question.text, question.gist]
        embedded = embedding.embed_query(texts)
        if embedded is None:
            return None
        model, vectors = embedded
        whole = vectors[0]
        if alone:
            return model, whole
        mean = (1 - share) * whole + share * vectors[1]
        length = float(np.linalg.norm(mean))
        return model, mean / length if length > 1e-6 else whole

    def _vector(self, embedded: tuple[str, Vectors]) -> dict[str, Any]:
        model, vector = embedded
        return {"model": model, "dimension": len(vector), "vector": HalfVector(vector).to_text()}

    def _rows(self, sql: str, embedded: tuple[str, Vectors]) -> dict[int, float]:
        with connection.cursor() as cursor:
            cursor.execute(sql, {**self.params, **self._vector(embedded), "limit": self.depth})
            return {row[0]: float(row[1]) for row in cursor.fetchall()}

    def _hybrid(self, question: Question, embedded: tuple[str, Vectors]) -> list[Scored]:
        found = find_candidates(self.query, embedded, self.where, self.depth)
        contenders = self._contenders(question, found)
        scored = self._fused(question, contenders, embedded)
        if len(scored) < self.wanted and len(contenders) < len(found):  # some had expired
            scored = self._fused(question, found, embedded)
        return scored

    def _without_vectors(self, ranking: str, question: Question) -> list[Scored]:
        """Words alone; parts of words where there are none."""
        if ranking != "hybrid":
            return self._lexical()
        covered = words.bm25(self.query, self.params, self.depth)
        found = [Candidate(pk, None, share) for pk, share in covered.items()]
        return self._fused(question, found, None) if found else self._lexical()

    def _contenders(self, question: Question, found: list[Candidate]) -> list[Candidate]:
        """Those that can be among the wanted, whatever the signals beside meaning and words say.

        Whom a question is about depends on whom the candidates are about: with several names all of them count.
        """
        if len(found) <= self.wanted or len(question.names) + question.about_self > 1:
            return found
        weights = self.weights
        swing = (
            abs(weights.recency) + abs(weights.importance) + abs(weights.asking)
            + abs(weights.date) * bool(question.dates)
            + abs(weights.time) * question.asks_when
            + abs(weights.number) * question.asks_number
            + abs(weights.person) * bool(question.names or question.about_self)
        )  # fmt: skip
        # No vector of theirs is nearer than the last that the meaning arm gave; some have none.
        furthest = max(0.0, min((c.cosine for c in found if c.cosine is not None), default=1.0))
        lower, upper = [], []
        for candidate in found:
            by_words = weights.words * candidate.words
            if candidate.cosine is not None:
                lower.append(by_words + weights.meaning * max(0.0, candidate.cosine))
                upper.append(lower[-1])
            else:
                lower.append(by_words)
                upper.append(by_words + weights.meaning * max(furthest, WORDS_AS_MEANING * candidate.words))
        floor = nlargest(self.wanted, lower)[-1] - swing
        return [candidate for candidate, most in zip(found, upper, strict=True) if most >= floor]

    def _fused(
        self, question: Question, found: list[Candidate], embedded: tuple[str, Vectors] | None
    ) -> list[Scored]:
        given = {**self.params, "ids": [candidate.pk for candidate in found]}
        missing = [candidate.pk for candidate in found if candidate.cosine is None] if embedded else []
        if embedded and missing:
            given |= self._vector(embedded) | {"missing": missing}
        with connection.cursor() as cursor:
            cursor.execute(_FEATURES.format(cosine=_COSINE if missing else ", NULL"), given)
            rows = cursor.fetchall()
        known = {candidate.pk: candidate for candidate in found}
        names = bool(question.names or question.about_self)
        subjects = {pk: subject(content, author) for pk, content, author, *_ in rows} if names else {}
        named = question.names & set(subjects.values())
        about = next(iter(named)) if len(named) == 1 else ""
        if not named and question.about_self:
            about = self.user.get_username().lower()
        scored = []
        for pk, content, _, created_at, importance, cosine in rows:
            parts = hybrid_parts(
                cosine if known[pk].cosine is None else known[pk].cosine,
                known[pk].words,
                date=question.dates.nearness(created_at) if question.dates else 0.0,
                time=question.asks_when and mentions_time(content),
                number=question.asks_number and mentions_number(content),
                person=bool(about) and subjects[pk] == about,
                asking=asks(content),
                recent=recency(created_at, None, self.now),
                importance=importance,
                weights=self.weights,
            )
            scored.append((pk, parts))
        return _best_first(scored)

    def _semantic(self, embedded: tuple[str, Vectors]) -> list[Scored]:
        found = self._visible(self._rows(_NEAREST, embedded))
        return _best_first([(pk, {"meaning": cosine}) for pk, (cosine, _, _, _) in found.items()])

    def _longterm(self, embedded: tuple[str, Vectors]) -> list[Scored]:
        found = self._visible(self._rows(_LONGTERM, embedded))
        return _best_first(
            [
                (pk, longterm_parts(cosine, recency(created_at, accessed_at, self.now), importance))
                for pk, (cosine, created_at, accessed_at, importance) in found.items()
            ]
        )

    def _visible(
        self, cosines: dict[int, float]
    ) -> dict[int, tuple[float, datetime, datetime | None, float]]:
        """What of these is live and the asker's to see, with cosine, both dates and importance."""
        rows = (
            Memory.objects.recallable_in(self.workspace, self.user)
            .live(self.now)
            .filter(pk__in=list(cosines))
        )
        columns = rows.values_list("pk", "created_at", "last_accessed_at", "importance")
        return {
            pk: (cosines[pk], created, accessed, importance) for pk, created, accessed, importance in columns
        }

    def _lexical(self) -> list[Scored]:
        """Full text, then parts of words where it finds nothing; in the order Postgres gave."""
        matched = words.match_words(self.query, self.params, self.depth) or words.match_contains(
            self.query, self.params, self.depth
        )
        return [(pk, {"words": rank}) for pk, rank in matched]


def _best_first(scored: list[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda item: (-sum(item[1].values()), -item[0]))


def _bump(ids: list[int], now: datetime) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_BUMP, {"now": now, "ids": ids})
