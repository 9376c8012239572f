"""Passages of a workspace's documents that say something about a query, best first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memoryhub.errors import NotFound
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.llm.registry import get_embedder
from workspaces.documents.kind import DOCUMENTS
from workspaces.index.candidates import SearchArea, search_area
from workspaces.index.reembedding import missing
from workspaces.index.scores import CANDIDATES, FLOOR, Arm, embedded_query, related, score_of
from workspaces.index.words import bm25
from workspaces.leaving_machine import Reach
from workspaces.models import (
    Document,
    DocumentPassage,
    DocumentStatus,
    EmbeddingModel,
    PassageVector,
    User,
    Workspace,
)
from workspaces.models.document import DOCUMENT

QUERY_LENGTH = 4000
MOST = 100
EMBEDDED_WITHIN = timedelta(days=1)  # of being brought; those before are not looked at
BESIDE = 0.2  # of its score, what a passage adds to its neighbours in the order (docs/recall.md)


@dataclass(frozen=True)
class FoundPassage:
    passage: DocumentPassage  # with its document
    score: float
    number: int = 0  # by which an answer cites it already


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

    The order is not quite that of the scores: what stands beside other finds comes before what stands alone.
    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    Words answer where the embedder fails. ``arm``, for measuring, is one of the two alone. One query of the index, two
    for the passages; the query is embedded.
    """
    where, query = _where(workspace, user, reach), _clean(query)
    if not query or limit < 1:
        return []
    scores = related(DOCUMENTS, query, where, floor=floor, by_words=by_words, arm=arm)
    rows = DocumentPassage.objects.filter(workspace=workspace, deleted_at=None)
    worth = _beside(rows, scores) if arm == "hybrid" else scores
    best = sorted(worth, key=lambda ref: (-worth[ref], ref))[: min(limit, MOST)]
    there = rows.select_related("document").in_bulk(best)
    return [FoundPassage(there[ref], scores[ref]) for ref in best if ref in there]


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
    if embedded := embedded_query(query, where):
        model, vector = embedded
        vectors = PassageVector.objects.filter(
            kind=DOCUMENT, live=True, model=model, dimension=len(vector), ref__in=rows.values("pk")
        ).annotate(distance=CosineDistance("embedding", HalfVector(vector)))
        nearest = vectors.order_by("distance").values_list("ref", "distance")[:limit]
        cosines = {ref: 1 - distance for ref, distance in nearest}
    scores = {ref: score_of(cosines.get(ref), shares.get(ref, 0.0)) for ref in {*cosines, *shares}}
    found = _best(rows, scores, limit)
    taken = [each.passage.pk for each in found]
    first = rows.exclude(pk__in=taken).select_related("document").order_by("number", "document")
    return found + [FoundPassage(passage, 0.0) for passage in first[: limit - len(found)]]


def by_words_only(documents: Iterable[Document], *, now: datetime) -> set[int]:
    """Those of them that were read just now and are not yet found by what they mean, or not all of it. Two queries."""
    read = [
        each.pk
        for each in documents
        if each.status == DocumentStatus.READY and each.updated_at > now - EMBEDDED_WITHIN
    ]
    if not read or get_embedder() is None:
        return set()
    active = EmbeddingModel.objects.active()
    if active is None:  # the first of all
        return set(read)
    return set(missing(active, DOCUMENTS).filter(document__in=read).values_list("document", flat=True))


def _where(workspace: Workspace, user: User, reach: Reach) -> SearchArea:
    where = search_area(workspace.pk, user.pk)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if reach.leaves and where.local_only:
        raise ModelNotLocal
    return replace(where, personal=False)


def _clean(query: str) -> str:
    return query.replace("\x00", " ").strip()[:QUERY_LENGTH]


def _beside(rows: QuerySet[DocumentPassage], scores: dict[int, float]) -> dict[int, float]:
    """What each is worth in the order: an answer is often longer than a passage, chance seldom hits two together."""
    places = rows.filter(pk__in=list(scores)).values_list("pk", "document", "number")
    at = {(document, number): scores[ref] for ref, document, number in places}
    return {
        ref: scores[ref]
        + BESIDE * (at.get((document, number - 1), 0.0) + at.get((document, number + 1), 0.0))
        for ref, document, number in places
    }


def _best(rows: QuerySet[DocumentPassage], scores: dict[int, float], limit: int) -> list[FoundPassage]:
    """Those of the rows that have a score, by it."""
    there = rows.select_related("document").in_bulk(list(scores))
    best = sorted(there, key=lambda ref: (-scores[ref], ref))
    return [FoundPassage(there[ref], scores[ref]) for ref in best[:limit]]
