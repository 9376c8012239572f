"""Ranked search for the memories that are relevant to a query: by meaning, by words, or by both (hybrid).

The best memories are loaded in one query, checked for credentials, and marked as accessed.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
from django.core.cache import caches
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, transaction
from django.db.models import Model, Q, prefetch_related_objects
from django.utils.text import Truncator
from django_q.tasks import async_task

from memories import indexing
from memories.indexing import MEMORIES
from memories.judging.secret_filter import RULES
from memories.models import Memory
from memories.models.memory import MEMORY, PLACE, WRITTEN_BY, live_sql
from memories.recalling import relevance
from memories.recalling.question import Question, asks, mentions_number, mentions_time, read_question, subject
from memories.recalling.ranking import WORDS_AS_MEANING, Weights, hybrid_parts, longterm_parts, recency
from memories.recalling.relevance import Relevance
from memories.writing.drafts import kind_in
from memoryhub.database import queries
from memoryhub.database.queries import current_connection, using
from memoryhub.database.replicas import is_reading, stands_in
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


# Loading of the memories that were found.

BUMPED_EVERY = timedelta(minutes=1)
RECHECKED_EVERY = 10  # seconds between two jobs, so that not every recall of an unchecked memory queues one
# The columns of a memory without the large ones. _LOAD adds whether its vector exists, the latest memory that may
# replace it, who wrote and imported it, and the older memory that it may replace.
_NAMES = [f.attname for f in Memory._meta.concrete_fields if f.name not in {"search", "source_excerpt"}]


def _in_order(model: type[Model], *names: str) -> list[str]:
    """Return field names in the order of the model's fields, which ``from_db`` requires."""
    return [field.attname for field in model._meta.concrete_fields if field.name in names]


_AUTHOR = _in_order(User, "id", "username", "first_name", "last_name", "public_id")
_OLDER = _in_order(Memory, "id", "public_id", "content", "expires_at", "replaced_by", "deleted_at")
_LOAD = f"""
SELECT {", ".join(f"m.{name}" for name in _NAMES)}, EXISTS (
           SELECT 1 FROM workspaces_passagevector e WHERE e.kind = 1 AND e.ref = m.id AND e.model = %(active)s::text
             AND e.place = ANY(%(places)s::bigint[])
       ), (SELECT max(n.id) FROM memories_memory n WHERE n.may_replace_id = m.id AND {live_sql("n")}
           AND n.workspace_id = ANY(%(workspaces)s::bigint[])),
       {", ".join(f"u.{name}" for name in _AUTHOR)}, {", ".join(f"i.{name}" for name in _AUTHOR)},
       {", ".join(f"o.{name}" for name in _OLDER)}
FROM memories_memory m LEFT JOIN workspaces_user u ON u.id = {WRITTEN_BY}
LEFT JOIN workspaces_user i ON i.id = m.imported_by_id
LEFT JOIN (
    SELECT {", ".join(_OLDER)} FROM memories_memory WHERE workspace_id = ANY(%(workspaces)s::bigint[])
) o ON o.id = m.may_replace_id
WHERE m.id = ANY(%(ids)s::bigint[]) AND {live_sql()}
  AND {PLACE} = ANY(%(places)s::bigint[]) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
"""  # noqa: S608  column names only
# Skips locked rows and rows accessed within the last minute, because seconds do not matter. Outside a transaction the
# commit does not wait for the disk, because accesses lost in a crash do not matter either.
_BUMP = """
WITH quick AS MATERIALIZED (SELECT {quick})
UPDATE memories_memory SET last_accessed_at = %(now)s::timestamptz FROM quick WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
      AND workspace_id = ANY(%(workspaces)s::bigint[])
      AND (last_accessed_at IS NULL OR last_accessed_at < %(now)s::timestamptz - interval '1 minute')
    FOR UPDATE SKIP LOCKED) AND workspace_id = ANY(%(workspaces)s::bigint[])
"""
_QUICK = "set_config('synchronous_commit', 'off', true)"  # until the end of the statement's own transaction


def load_memories(ids: Iterable[int], params: Mapping[str, Any], *, model: str) -> dict[int, Memory]:
    """Return live memories by primary key. One query.

    Memories outside the scopes ``params["places"]`` are left out, and those in which the current rules find a
    credential. Each memory is loaded with its writer and the older memory that it may replace. It has ``searchable``
    (whether its vector of ``model`` exists) and ``newer`` (the primary key of the latest memory that may replace it).
    """
    people: dict[int, User] = {}
    rows = queries.rows(_LOAD, {**params, "ids": list(ids), "active": model})
    return {memory.pk: memory for memory in _clean([_memory(row, people) for row in rows])}


def mark_accessed(memories: list[Memory], now: datetime) -> None:
    """Mark memories as accessed now. Those accessed within the last minute are left as they are."""
    before = now - BUMPED_EVERY
    bumped = [each for each in memories if each.last_accessed_at is None or each.last_accessed_at < before]
    for memory in bumped:
        memory.last_accessed_at = now
    if bumped:
        statement = _BUMP.format(quick="1" if connection.in_atomic_block else _QUICK)
        params = {
            "now": now,
            "ids": [each.pk for each in bumped],
            "workspaces": {each.workspace_id for each in bumped},
        }
        _log_failure(lambda: queries.rows(statement, params))


def _log_failure(write: Callable[[], object]) -> None:
    """Run a write, and only log its failure, so that recall works with a full or read-only database.

    If the caller's transaction is aborted by the failure, DatabaseError is raised.
    """
    if stands_in():
        return
    try:
        with using(DEFAULT_DB_ALIAS):
            write()
    except DatabaseError as error:
        if connection.in_atomic_block:  # the caller's transaction is aborted
            raise
        logger.warning("A note about what was recalled was not written: %s", type(error.__cause__).__name__)


def _memory(row: tuple[Any, ...], people: dict[int, User]) -> Memory:
    """Build a memory from a row of ``_LOAD``. ``people`` caches the users of earlier rows."""
    at, writer = len(_NAMES), len(_NAMES) + 2
    importer, after = writer + len(_AUTHOR), writer + 2 * len(_AUTHOR)
    memory = Memory.from_db(DEFAULT_DB_ALIAS, _NAMES, row[:at])
    memory.searchable = row[at]  # type: ignore[attr-defined]  # as in workspaces.index.embedding.searchable
    memory.newer = row[at + 1]  # type: ignore[attr-defined]
    if isinstance(memory.source_details, str):  # as without a prepared statement
        memory.source_details = json.loads(memory.source_details)
    is_edited = memory.edited_at is not None
    key = memory.edited_by_id if is_edited else memory.author_id
    for person, begins in ((key, writer), (memory.imported_by_id, importer)):
        if person is not None and person not in people:
            people[person] = User.from_db(DEFAULT_DB_ALIAS, _AUTHOR, row[begins : begins + len(_AUTHOR)])
    memory.imported_by = people[memory.imported_by_id] if memory.imported_by_id is not None else None
    setattr(memory, "edited_by" if is_edited else "author", people[key] if key is not None else None)
    older = memory.may_replace_id is not None
    memory.may_replace = Memory.from_db(DEFAULT_DB_ALIAS, _OLDER, row[after:]) if older else None
    return memory


def _clean(memories: list[Memory]) -> list[Memory]:
    """Remove memories in which newer rules find a credential, and queue a job that hides them in the database. No
    query.

    Source excerpts are not checked here, because recall does not return them; ``scan_secrets`` checks them.
    """
    stale = [memory for memory in memories if memory.secret_rules != RULES]
    if not stale:
        return memories
    if caches["process"].add("memories.recheck", True, RECHECKED_EVERY):
        ids = [memory.pk for memory in stale]
        _log_failure(lambda: async_task("memories.tasks.recheck_memories", memory_ids=ids))
    refused = {memory.pk for memory in stale if kind_in(memory)}
    return [memory for memory in memories if memory.pk not in refused]
