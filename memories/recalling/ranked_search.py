"""Ranked search for the memories that are relevant to a query: by meaning, by words, or by both (hybrid)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy as np
from django.db import DatabaseError, transaction
from django.db.models import Q, prefetch_related_objects
from django.utils.text import Truncator

from memories import indexing
from memories.indexing import MEMORIES
from memories.models import Memory
from memories.models.memory import MEMORY, PLACE, WRITTEN_BY, live_sql
from memories.recalling import relevance
from memories.recalling.loading import load_memories
from memories.recalling.question import Question, asks, mentions_number, mentions_time, read_question, subject
from memories.recalling.ranking import WORDS_AS_MEANING, Weights, hybrid_parts, longterm_parts, recency
from memories.recalling.relevance import Relevance
from memoryhub.database import queries
from memoryhub.database.queries import current_connection
from memoryhub.database.replicas import is_reading
from memoryhub.llm.base import Vectors
from memoryhub.llm.bundled_embedder import LENGTH, MULTILINGUAL, TwoEncoders
from memoryhub.llm.errors import EmbedderError
from workspaces.index import embedding
from workspaces.index.hybrid_search import Candidate, SearchArea, bm25, find_candidates
from workspaces.index.question_gist import with_gist
from workspaces.index.scores import PRODUCTS
from workspaces.models import Agent, User, Workspace

logger = logging.getLogger(__name__)
FIRST = 40  # candidates that are scored first, the best by meaning and words
ALWAYS = datetime.max.replace(tzinfo=UTC)
STANDING_SHARE = 0.4  # factor for the relevance of valid memories, if the answer is in the past
LINE_LENGTH = 200  # characters of a memory in an overview
CANDIDATES = 200  # from each search, by meaning and by words; their union is ranked

# Exact cosine over one workspace and the user's personal rows, from the table of vectors alone (docs/recall.md).
_NEAREST = """
SELECT e.ref, 1 - (e.embedding <=> %(vector)s::halfvec) AS cosine
FROM workspaces_passagevector e
WHERE e.kind = 1 AND e.live AND e.model = %(model)s::text AND e.dimension = %(dimension)s::int
  AND e.place = ANY(%(places)s::bigint[])
ORDER BY e.embedding <=> %(vector)s::halfvec
LIMIT %(limit)s::int
"""
# The long-term score over every vector. A preselection by cosine would lose old and important memories.
_LONGTERM = f"""
SELECT e.ref, 1 - (e.embedding <=> %(vector)s::halfvec) AS cosine
FROM workspaces_passagevector e JOIN memories_memory m ON m.id = e.ref
WHERE e.kind = 1 AND e.live AND e.model = %(model)s::text AND e.dimension = %(dimension)s::int
  AND e.place = ANY(%(places)s::bigint[]) AND {live_sql()}
  AND (m.valid_to IS NULL OR m.valid_to > %(held_at)s::timestamptz)
  AND (m.valid_from IS NULL OR m.valid_from <= %(begun_by)s::timestamptz)
  AND m.workspace_id = ANY(%(workspaces)s::bigint[])
ORDER BY 0.7 * (1 - (e.embedding <=> %(vector)s::halfvec))
  + 0.2 * power(0.5::float8,
        greatest(0, date_part('epoch', %(now)s::timestamptz - greatest(m.created_at, m.last_accessed_at))) / 2592000.0)
  + 0.1 * m.importance DESC, m.id DESC
LIMIT %(limit)s::int
"""  # noqa: S608  constants only
# The columns for scoring the candidates, with the cosine of candidates that were found by words alone (``missing``).
# Live memories in the user's places are selected again.
_FEATURES = f"""
SELECT m.id, left(m.content, 500), coalesce(u.username, ''), m.created_at, m.importance,
       m.valid_from, m.valid_to, 1 - (e.embedding <=> %(vector)s::halfvec)
FROM memories_memory m
LEFT JOIN workspaces_user u ON u.id = {WRITTEN_BY}
LEFT JOIN workspaces_passagevector e ON e.kind = 1 AND e.ref = m.id AND e.ref = ANY(%(missing)s::bigint[])
    AND e.live AND e.model = %(model)s::text AND e.dimension = %(dimension)s::int
    AND e.place = ANY(%(places)s::bigint[])
WHERE m.id = ANY(%(ids)s::bigint[]) AND {live_sql()}
  AND {PLACE} = ANY(%(places)s::bigint[]) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
"""  # noqa: S608  constants only
# Inner products of the message's vector with both parts of each statement's vector, the length of the English part, and
# those of ``relevance.heads_for``. Then the first three for other memories, the background (``relevance``).
_STATEMENT = "coalesce(e.statement, e.embedding)"
_HEAD = f"-(subvector({_STATEMENT}, {MULTILINGUAL.start + 1}, {LENGTH}) <#> %({{}})s::halfvec)"
_PRODUCTS = f"""
SELECT e.ref, {PRODUCTS.format(_STATEMENT)}, {", ".join(map(_HEAD.format, relevance.HEADS))}
FROM workspaces_passagevector e
WHERE e.kind = 1 AND e.live AND e.ref = ANY(%(ids)s::bigint[]) AND e.model = %(model)s::text
  AND e.place = ANY(%(places)s::bigint[])
UNION ALL
SELECT NULL, {PRODUCTS.format("b.embedding")}{", NULL" * len(relevance.HEADS)}
FROM (
    SELECT e.embedding FROM workspaces_passagevector e
    WHERE e.kind = 1 AND e.live AND e.model = %(model)s::text AND e.place = ANY(%(places)s::bigint[])
    LIMIT {relevance.BACKGROUND}
) b
"""  # noqa: S608  constants only
# The multilingual part of the memories' vectors, and its mean over the background.
_PART = f"subvector({{}}, {MULTILINGUAL.start + 1}, {LENGTH})"
_VECTORS = f"""
SELECT e.ref, {_PART.format(_STATEMENT)}::vector::real[]
FROM workspaces_passagevector e
WHERE e.kind = 1 AND e.live AND e.ref = ANY(%(ids)s::bigint[]) AND e.model = %(model)s::text
  AND e.place = ANY(%(places)s::bigint[])
UNION ALL
SELECT NULL, avg({_PART.format("b.embedding")})::vector::real[]
FROM (
    SELECT e.embedding FROM workspaces_passagevector e
    WHERE e.kind = 1 AND e.live AND e.model = %(model)s::text AND e.place = ANY(%(places)s::bigint[])
    LIMIT {relevance.BACKGROUND}
) b
"""  # noqa: S608  constants only
_NO_VECTOR = {"vector": None, "model": "", "dimension": 0}


Scored = tuple[int, dict[str, float]]  # a memory's key and the parts of its score


@dataclass(frozen=True)
class Recalled:
    memory: Memory
    score: float
    parts: dict[str, float]
    relevance: Relevance | None = None  # None if the embedder's vectors do not allow it
    is_brief: bool = False  # one line of an overview

    @property
    def text(self) -> str:
        """Return the memory's text for the model: its whole content, or in an overview one shortened line."""
        content = self.memory.content
        return Truncator(" ".join(content.split())).chars(LINE_LENGTH) if self.is_brief else content


def texts_embedded_for(query: str, question: Question | None, share: float) -> list[str]:
    """Return the texts to embed for a query: the query, and its gist if that differs.

    The gist is the question without names and question words. It is left out if its weight ``share`` is 0.
    """
    alone = question is None or question.gist == question.text or not share
    return [query] if question is None or alone else [question.text, question.gist]


@dataclass
class RankedSearch:
    """A search for one query in the scopes ``where`` of a workspace.

    ``wanted`` is the number of results needed, counted from the first one, not from the requested offset.
    """

    query: str
    workspace: Workspace
    user: User
    agent: Agent | None
    where: SearchArea
    now: datetime
    wanted: int
    weights: Weights
    exact: bool
    as_of: datetime | None = None  # search memories valid at this time, instead of now

    def __post_init__(self) -> None:
        where = self.where
        self.depth = max(CANDIDATES, self.wanted)
        self.question = read_question(self.query, self.now)
        self.params: dict[str, Any] = {
            **where.params,
            "now": self.now,
            "held_at": self.as_of or self.now,
            "begun_by": self.as_of or ALWAYS,
            **_NO_VECTOR,
        }
        self.embedded: tuple[str, Vectors] | None = None
        self.asked: Vectors | None = None  # the question's vector without its gist's; hybrid ranking only
        self.asks_past = False  # set by ``judge``, if it knows the relevance
        self.contents: dict[int, str] = {}  # the beginning of each memory that was ranked, by key
        self.validity: dict[int, tuple[datetime | None, datetime | None]] = {}  # from and to, by key

    def own(self, ranking: str, degraded: str, most: int) -> list[Recalled]:
        """Search only the user's personal memories, and return the best ``most``. The query is not embedded again."""
        search = copy(self)
        search.where = replace(self.where, personal_alone=True)
        search.params = self.params | search.where.params
        if degraded:
            scored = search._without_vectors(ranking)
            return search.load(search.holding(scored)[:most])
        scored = search.ranked(ranking)[0]
        return search.load(scored[:most], search.judge(scored[: relevance.LOOKED_AT]))

    def ranked(self, ranking: str) -> tuple[list[Scored], str]:
        """Return the ranked memories, best first, and the reason why the search fell back to words.

        A memory is given as (primary key, parts of its score). The reason is "" if the search did not fall back.
        """
        if ranking == "lexical":
            return self._lexical(), ""
        try:
            embedded = self._embed(self.question if ranking == "hybrid" else None)
            if embedded is None:
                return self._without_vectors(ranking), "no embedder is configured"
            self.embedded = model, vector = embedded
            self.params |= {"model": model, "dimension": len(vector), "vector": vector}
            with self._transaction_if_needed():
                if ranking == "hybrid":
                    return self._hybrid(embedded), ""
                return self._longterm() if ranking == "longterm" else self._semantic(), ""
        except EmbedderError as error:
            logger.warning("Recall fell back to words: %s", error.code)
            return self._without_vectors(ranking), embedding.why_words(error)
        except DatabaseError:
            if is_reading():  # the whole search is repeated on the primary
                raise
            logger.exception("Vector search failed; recall fell back to words")
            return self._without_vectors(ranking), "the vector search failed"

    def _transaction_if_needed(self) -> AbstractContextManager[object]:
        """Return a transaction if one is needed to tune an index or to keep a failure from aborting the caller's
        transaction.
        """
        current = current_connection()
        needed = self.where.indexed or current.in_atomic_block
        return transaction.atomic(using=current.alias) if needed else nullcontext()

    def load(
        self, scored: list[Scored], judged: Mapping[int, Relevance] = MappingProxyType({})
    ) -> list[Recalled]:
        """Load the scored memories in this order, if the user may still see them.

        ``judged`` is their relevance by primary key.
        """
        active = self.where.active.label if self.where.active else ""
        ids = [pk for pk, _ in scored]
        loaded = load_memories(ids, self.params, model=active) if ids else {}
        items = [(loaded[pk], parts) for pk, parts in scored if pk in loaded]
        for memory, _parts in items:
            if memory.workspace_id == self.workspace.pk:
                memory.workspace = self.workspace
            if memory.agent_id is not None:  # no other assistant's memories are in the searched places
                memory.agent = self.agent
        prefetch_related_objects(
            [memory for memory, _ in items if memory.workspace_id != self.workspace.pk], "workspace"
        )
        return [
            Recalled(memory, sum(parts.values()), parts, judged.get(memory.pk)) for memory, parts in items
        ]

    def holding(self, scored: list[Scored]) -> list[Scored]:
        """Remove memories that are known to be invalid at the time of the search.

        Used if ``judge`` returns no relevance, in which validity would be considered.
        """
        return [each for each in scored if self._is_valid(each[0]) is not False]

    def _is_valid(self, pk: int) -> bool | None:
        """Return whether a ranked memory is valid at the time of the search. Return None if its validity is unknown."""
        begins, ends = self.validity.get(pk, (None, None))
        at = self.as_of or self.now
        if (ends is not None and ends <= at) or (self.as_of and begins is not None and begins > at):
            return False
        return True if self.as_of or (begins is not None and begins <= at) or ends is not None else None

    def judge(self, scored: list[Scored]) -> dict[int, Relevance]:
        """Return the relevance of these memories by primary key. One query.

        Return an empty dictionary unless the vectors are those of the bundled embedder. ``scored`` must be the first
        memories of the hybrid ranking.
        """
        active = self.where.active
        if self.asked is None or active is None or active.name != TwoEncoders.name:
            return {}
        message = relevance.read_message(self.query, self.asked)
        params = {
            "asked": self.asked,
            "ids": [pk for pk, _ in scored],
            "model": active.label,
            "places": self.params["places"],
            **relevance.heads_for(message),
        }
        rows = queries.rows(_PRODUCTS, params)
        products = {ref: rest for ref, *rest in rows if ref is not None}
        background = [rest[:3] for ref, *rest in rows if ref is None]
        candidates = {
            pk: relevance.Found(
                content=self.contents[pk],
                score=sum(parts.values()),
                words=parts["words"] / self.weights.words if self.weights.words else 0.0,
                meaning=parts["meaning"],
                products=products[pk],
                holds=self._is_valid(pk),
            )
            for pk, parts in scored
            if pk in products
        }
        dates = self.question.dates
        self.asks_past = asks_past = self.as_of is None and relevance.asks_past(message)
        past = asks_past or (self.as_of is None and dates is not None and dates.is_past(self.now.date()))
        judged = relevance.judge(message, list(candidates.values()), background, past=past)
        if asks_past:
            now = relevance.judge(message, list(candidates.values()), background, past=False)
            judged = _past_first(judged, [each.is_over for each in now])
        return dict(zip(candidates, judged, strict=True))

    def multilingual_vectors(self, keys: Iterable[int]) -> tuple[dict[int, Vectors], Vectors]:
        """Return the multilingual encoder's part of the memories' vectors by primary key, and their mean. One query.

        The mean is over at most BACKGROUND memories of the searched scopes. Call this only after ``judge`` has returned
        a relevance.
        """
        params = {
            "ids": list(keys),
            "model": self.params["model"],
            "places": self.params["places"],
        }
        rows = queries.rows(_VECTORS, params)
        vectors = {ref: np.array(vector, dtype=np.float32) for ref, vector in rows}
        return {ref: vector for ref, vector in vectors.items() if ref is not None}, vectors[None]

    def _embed(self, question: Question | None) -> tuple[str, Vectors] | None:
        """Return the active model's label and the query's vector, or None if no embedder is configured.

        In the hybrid ranking, the vector is the weighted mean of the question's and its gist's.
        """
        if self.embedded is not None:
            return self.embedded
        share = self.weights.gist
        texts = texts_embedded_for(self.query, question, share)
        embedded = embedding.embed_query(texts, self.where.active, local_only=self.where.local_only)
        if embedded is None:
            return None
        model, vectors = embedded
        self.asked = None if question is None else vectors[0]
        return model, with_gist(vectors, share)

    def _cosines(self, statement: str) -> dict[int, float]:
        return {
            pk: float(cosine) for pk, cosine in queries.rows(statement, {**self.params, "limit": self.depth})
        }

    def _hybrid(self, embedded: tuple[str, Vectors]) -> list[Scored]:
        """Return the scores of the best candidates by meaning and words, best first.

        First, a fixed number of candidates is scored by all signals, then the others that could still be among the
        results.
        """
        depth = 20 * self.depth if self.exact else self.depth
        candidates = find_candidates(MEMORIES, self.query, embedded, self.where, depth, exact=self.exact)
        bounded = sorted(zip(self._upper_bounds(candidates), candidates, strict=True), reverse=True)
        first = max(FIRST, 4 * self.wanted)
        about, scored = self._score([candidate for _, candidate in bounded[:first]])
        floor = -math.inf  # fewer results than wanted, because some have expired
        if len(scored) >= self.wanted:
            floor = sum(scored[self.wanted - 1][1].values()) - self._most_of_other_signals(about)
        rest = [candidate for most, candidate in bounded[first:] if most >= floor]
        return _best_first(scored + self._score(rest, about)[1]) if rest else scored

    def _without_vectors(self, ranking: str) -> list[Scored]:
        """Rank by words alone, or by parts of words if no word matches."""
        if ranking != "hybrid":
            return self._lexical()
        covered = bm25(MEMORIES, self.query, self.params, self.depth)
        candidates = [Candidate(MEMORY, pk, None, share) for pk, share in covered.items()]
        return self._score(candidates)[1] if candidates else self._lexical()

    def _most_of_other_signals(self, about: str) -> float:
        """Return the most that the signals other than meaning and words can add to a score.

        ``about`` is the name that the question is about, or "".
        """
        weights, question = self.weights, self.question
        return (
            weights.recency + weights.importance
            + weights.date * bool(question.dates)
            + weights.time * question.asks_when
            + weights.number * question.asks_number
            + weights.person * bool(about)
        )  # fmt: skip

    def _upper_bounds(self, candidates: list[Candidate]) -> list[float]:
        """Return for each candidate the highest score that meaning and words can give it.

        A candidate that the search by meaning did not return has no cosine. It is at most as near as the furthest one
        that was returned, whose cosine is used.
        """
        weights = self.weights
        furthest = max(0.0, min((c.cosine for c in candidates if c.cosine is not None), default=1.0))
        return [
            weights.words * words_share
            + weights.meaning
            * (max(furthest, WORDS_AS_MEANING * words_share) if cosine is None else max(0.0, cosine))
            for _, _, cosine, words_share in candidates
        ]

    def _score(self, candidates: list[Candidate], about: str | None = None) -> tuple[str, list[Scored]]:
        """Score the candidates. Return the name that the question is about or "", and the scores, best first.

        If ``about`` is None, the name is determined here. It must be in the question, and some of these candidates must
        be about it. If there are several such names, none is used. If there is none, a question with "I" or "my" is
        about the user.
        """
        question = self.question
        params = self.params | {
            "ids": [each.ref for each in candidates],
            "missing": [each.ref for each in candidates if each.cosine is None],
        }
        rows = queries.rows(_FEATURES, params)
        known = {candidate.ref: candidate for candidate in candidates}
        names = bool(question.names or question.about_self) if about is None else bool(about)
        self.contents.update((pk, content) for pk, content, *_ in rows)
        self.validity.update((row[0], (row[5], row[6])) for row in rows)
        subjects = {pk: subject(content, author) for pk, content, author, *_ in rows} if names else {}
        if about is None:
            named = question.names & set(subjects.values())
            about = next(iter(named)) if len(named) == 1 else ""
            if not named and question.about_self:
                about = self.user.get_username().lower()
        scored = []
        for pk, content, _author, created_at, importance, _from, _to, cosine in rows:
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
        return about, _best_first(scored)

    def _semantic(self) -> list[Scored]:
        signals = self._visible(self._cosines(_NEAREST))
        return _best_first([(pk, {"meaning": cosine}) for pk, (cosine, _, _, _) in signals.items()])

    def _longterm(self) -> list[Scored]:
        signals = self._visible(self._cosines(_LONGTERM))
        return _best_first(
            [
                (pk, longterm_parts(cosine, recency(created_at, accessed_at, self.now), importance))
                for pk, (cosine, created_at, accessed_at, importance) in signals.items()
            ]
        )

    def _visible(
        self, cosines: dict[int, float]
    ) -> dict[int, tuple[float, datetime, datetime | None, float]]:
        """Return cosine, creation, last access and importance by primary key.

        Only live memories that the user may see are returned.
        """
        rows = (
            Memory.objects.recallable_in(self.workspace, self.user, self.agent)
            .live(self.now)
            .not_over(self.as_of or self.now)
            .filter(Q(valid_from=None) | Q(valid_from__lte=self.as_of or ALWAYS))
            .filter(pk__in=list(cosines), workspace__in=self.where.workspaces)
        )
        columns = rows.values_list("pk", "created_at", "last_accessed_at", "importance")
        return {
            pk: (cosines[pk], created, accessed, importance) for pk, created, accessed, importance in columns
        }

    def _lexical(self) -> list[Scored]:
        """Rank by full text, in the order that Postgres returns. If nothing matches, search for parts of words."""
        matched = indexing.match_words(self.query, self.params, self.depth) or indexing.match_contains(
            self.query, self.params, self.depth
        )
        return [(pk, {"words": rank}) for pk, rank in matched]


def _past_first(judged: list[Relevance], over: list[bool]) -> list[Relevance]:
    """If a relevant memory is no longer valid, reduce the relevance of the valid ones.

    Used for messages that ask about the past. ``over`` says of each memory in ``judged`` whether it is no longer valid.
    """
    found_flags = [relevance.is_found(0.0, each) for each in judged]
    if not any(is_found and is_over for is_found, is_over in zip(found_flags, over, strict=True)):
        return judged
    return [
        each if is_over else each._replace(value=STANDING_SHARE * each.value)
        for each, is_over in zip(judged, over, strict=True)
    ]


def _best_first(scored: list[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda item: (-sum(item[1].values()), -item[0]))
