"""Passages of a workspace's documents that say something about a query, best first."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memoryhub.errors import NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError, ModelNotLocal
from memoryhub.llm.two_encoders import TwoEncoders
from workspaces.documents.kind import DOCUMENTS
from workspaces.index import embedding
from workspaces.index.candidates import SearchArea, find_candidates, search_area
from workspaces.index.words import bm25
from workspaces.leaving_machine import Reach
from workspaces.models import Document, DocumentPassage, PassageVector, User, Workspace
from workspaces.models.document import DOCUMENT

logger = logging.getLogger(__name__)
QUERY_LENGTH = 4000
CANDIDATES = 200
MOST = 100
# What meaning and words are worth, on the scale of memories' hybrid score: both stand in one list (docs/recall.md).
MEANING, WORDS = 0.70, 0.35
WORDS_AS_MEANING = 0.6  # the cosine that stands for words alone, where no vector is there to compare
FLOOR = 0.40  # of the score: from it on a passage has to do with the query
NEAR = 0.30  # the bundled embedder's cosine that says the same, in every language (docs/recall.md)

Arm = Literal["hybrid", "words", "vector"]


@dataclass(frozen=True)
class FoundPassage:
    passage: DocumentPassage  # with its document
    score: float


def find_passages(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int,
    reach: Reach,
    floor: float = FLOOR,
    by_words: bool = True,
    arm: Arm = "hybrid",
) -> list[FoundPassage]:
    """The passages this person may see here, best first, none below ``floor`` but what is NEAR. NotFound for others.

    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    Words answer where the embedder fails. ``arm``, for measuring, is one of the two alone. One query of the index, one
    for the passages; the query is embedded.
    """
    where, query = _where(workspace, user, reach), _clean(query)
    if not query or limit < 1:
        return []
    near = NEAR if where.active is not None and where.active.name == TwoEncoders.name else None
    scores = {
        ref: score
        for ref, score, cosine in _found(query, where, arm)
        if (score >= floor and (by_words or near is None or cosine is None))
        or (near is not None and cosine is not None and cosine >= near)
    }
    rows = DocumentPassage.objects.filter(workspace=workspace, deleted_at=None)
    return _best(rows, scores, min(limit, MOST))


def find_in(
    documents: QuerySet[Document], query: str, workspace: Workspace, user: User, *, limit: int, reach: Reach
) -> list[FoundPassage]:
    """The passages of these documents of the workspace that are nearest to the query, however far, best first; then
    their first ones, so that "summarise this" has something to go by, and what is not embedded yet.

    Exact, over the vectors of these documents alone; words count as far as they are among the workspace's best.
    """
    where, query = _where(workspace, user, reach), _clean(query)
    rows = DocumentPassage.objects.filter(workspace=workspace, document__in=documents, deleted_at=None)
    shares = bm25(DOCUMENTS, query, where.params, CANDIDATES)
    cosines: dict[int, float] = {}
    if embedded := _embedded(query, where):
        model, vector = embedded
        vectors = PassageVector.objects.filter(
            kind=DOCUMENT, live=True, model=model, dimension=len(vector), ref__in=rows.values("pk")
        ).annotate(distance=CosineDistance("embedding", HalfVector(vector)))
        nearest = vectors.order_by("distance").values_list("ref", "distance")[:limit]
        cosines = {ref: 1 - distance for ref, distance in nearest}
    scores = {ref: _score(cosines.get(ref), shares.get(ref, 0.0)) for ref in {*cosines, *shares}}
    found = _best(rows, scores, limit)
    taken = [each.passage.pk for each in found]
    first = rows.exclude(pk__in=taken).select_related("document").order_by("number", "document")
    return found + [FoundPassage(passage, 0.0) for passage in first[: limit - len(found)]]


def _where(workspace: Workspace, user: User, reach: Reach) -> SearchArea:
    where = search_area(workspace.pk, user.pk)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if reach.leaves and where.local_only:
        raise ModelNotLocal
    return replace(where, personal=False)


def _clean(query: str) -> str:
    return query.replace("\x00", " ").strip()[:QUERY_LENGTH]


def _best(rows: QuerySet[DocumentPassage], scores: dict[int, float], limit: int) -> list[FoundPassage]:
    """Those of the rows that have a score, by it."""
    there = rows.select_related("document").in_bulk(list(scores))
    best = sorted(there, key=lambda ref: (-scores[ref], ref))
    return [FoundPassage(there[ref], scores[ref]) for ref in best[:limit]]


def _embedded(query: str, where: SearchArea) -> tuple[str, Vectors] | None:
    """None where nothing is embedded, or the embedder fails: words answer then."""
    try:
        embedded = embedding.embed_query([query], where.active, local_only=where.local_only)
    except EmbedderError as error:
        logger.warning("Search of documents fell back to words: %s", error.code)
        return None
    return (embedded[0], embedded[1][0]) if embedded else None


def _found(query: str, where: SearchArea, arm: Arm) -> list[tuple[int, float, float | None]]:
    """Passages, their scores and their cosines, in no order."""
    embedded = None if arm == "words" else _embedded(query, where)
    if embedded is None:
        shares = bm25(DOCUMENTS, query, where.params, CANDIDATES)
        return [(ref, _score(None, share), None) for ref, share in shares.items()]
    with transaction.atomic() if where.indexed else nullcontext():
        found = find_candidates(query, embedded, where, CANDIDATES, kinds=(DOCUMENT,))
    if arm == "vector":
        return [(each.ref, each.cosine, each.cosine) for each in found if each.cosine is not None]
    return [(each.ref, _score(each.cosine, each.words), each.cosine) for each in found]


def _score(cosine: float | None, words: float) -> float:
    meaning = WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)
    return MEANING * meaning + WORDS * words
