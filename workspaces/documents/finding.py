"""Passages of a workspace's documents that say something about a query, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.db.models import QuerySet
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memoryhub.database import queries
from memoryhub.llm.registry import get_embedder
from workspaces.documents.kind import DOCUMENTS
from workspaces.index.candidates import SearchArea, area_within
from workspaces.index.scores import (
    CANDIDATES,
    FLOOR,
    Arm,
    Scored,
    above_floor,
    embedded_query,
    found,
    score_of,
)
from workspaces.index.words import bm25
from workspaces.leaving_machine import Reach, in_reach
from workspaces.models import (
    Document,
    DocumentPassage,
    PassageVector,
    User,
    Workspace,
)
from workspaces.models.document import DOCUMENT

QUERY_LENGTH = 4000
MOST = 100
WORDS_FLOOR = 0.25  # of a passage without a vector: a third of the question's weight in words
# What a passage adds to those one, two and three places from it in the order: of how far it is above the mean of what
# was found (docs/recall.md).
BESIDE = (0.3, 0.2, 0.1)
_PLACES = """
SELECT id, document_id, number FROM workspaces_documentpassage
WHERE id = ANY(%(refs)s::bigint[]) AND deleted_at IS NULL
  AND CASE WHEN owner_id IS NULL THEN workspace_id = %(workspace)s::bigint ELSE owner_id = %(owner)s::bigint END
"""


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
    """The passages this person may see here, their own among them where ``reach`` allows it: best first, none below
    ``floor`` but what is NEAR. NotFound for others.

    The order is not quite that of the scores: what stands among other finds comes before what stands alone.
    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    Words answer where the embedder fails. ``arm``, for measuring, is one of the two alone. One query of the index, two
    for the passages; the query is embedded.
    """
    where, query = area_within(reach, workspace, user), _clean(query)
    if not query or limit < 1:
        return []
    scored = found(DOCUMENTS, query, where, arm=arm)
    wanted = above_floor(scored, where, floor=floor, by_words=by_words)
    if arm == "hybrid":
        wanted |= _not_embedded([each for each in scored if each.ref not in wanted], where)
    if not wanted:
        return []
    worth: dict[int, float] = {}
    if arm == "hybrid":
        scores = {ref: score for ref, score, _ in scored}
        owner = user.pk if where.personal else 0
        given = {"refs": queries.bigints(scores), "workspace": workspace.pk, "owner": owner}
        worth = _among(queries.rows(_PLACES, given), scores)
    rows = in_reach(DocumentPassage.objects.live(), workspace, user, reach)
    return _best(rows, wanted, worth, min(limit, MOST))


def _not_embedded(scored: list[Scored], where: SearchArea) -> dict[int, float]:
    """Return those without a vector yet among the ones found by words alone: they answer questions until it is made.

    One query, where there are any.
    """
    scores = {each.ref: each.score for each in scored if each.cosine is None and each.score >= WORDS_FLOOR}
    if not scores or where.active is None:
        return scores if where.active is None and get_embedder() is not None else {}
    vectors = PassageVector.objects.filter(place__in=where.places, kind=DOCUMENT, ref__in=list(scores))
    embedded = set(vectors.filter(model=where.active.label).values_list("ref", flat=True))
    return {ref: score for ref, score in scores.items() if ref not in embedded}


def find_in(
    documents: QuerySet[Document], query: str, workspace: Workspace, user: User, *, limit: int, reach: Reach
) -> list[FoundPassage]:
    """The passages of these documents that are nearest to the query, however far, best first; then
    their first ones, so that "summarise this" has something to go by, and what is not embedded yet.

    Exact, over the vectors of these documents alone; words count as far as they are among the workspace's best.
    """
    where, query = area_within(reach, workspace, user), _clean(query)
    rows = in_reach(DocumentPassage.objects.live(), workspace, user, reach).filter(document__in=documents)
    shares = bm25(DOCUMENTS, query, where.params, CANDIDATES)
    cosines: dict[int, float] = {}
    if embedded := embedded_query(query, where):
        model, vector = embedded
        vectors = PassageVector.objects.filter(
            place__in=where.places,
            kind=DOCUMENT,
            live=True,
            model=model,
            dimension=len(vector),
            ref__in=rows.values("pk"),
        ).annotate(distance=CosineDistance("embedding", HalfVector(vector)))
        nearest = vectors.order_by("distance").values_list("ref", "distance")[:CANDIDATES]
        cosines = {ref: 1 - distance for ref, distance in nearest}
    scores = {ref: score_of(cosines.get(ref), shares.get(ref, 0.0)) for ref in {*cosines, *shares}}
    places = rows.filter(pk__in=list(scores)).values_list("pk", "document", "number")
    best = _best(rows, scores, _among(list(places), scores), limit)
    taken = [each.passage.pk for each in best]
    first = rows.exclude(pk__in=taken).select_related("document").order_by("number", "document")
    return best + [FoundPassage(passage, 0.0) for passage in first[: limit - len(best)]]


def _clean(query: str) -> str:
    return query.replace("\x00", " ").strip()[:QUERY_LENGTH]


def _among(places: Sequence[tuple[Any, ...]], scores: dict[int, float]) -> dict[int, float]:
    """Return what each of these, with its document and number, is worth in the order: an answer is often longer than
    a passage, and several hits near each other mean that a section is about the question, which chance rarely makes.
    """
    usual = fmean(scores[ref] for ref, _, _ in places) if places else 0.0
    above = {(document, number): max(0.0, scores[ref] - usual) for ref, document, number in places}
    return {
        ref: above[document, number]
        + sum(
            share * (above.get((document, number - steps), 0.0) + above.get((document, number + steps), 0.0))
            for steps, share in enumerate(BESIDE, 1)
        )
        for ref, document, number in places
    }


def _best(
    rows: QuerySet[DocumentPassage], scores: dict[int, float], worth: dict[int, float], limit: int
) -> list[FoundPassage]:
    """Return the rows that have a score: first what is ``worth`` most, then by score."""
    best = sorted(scores, key=lambda ref: (-worth.get(ref, 0.0), -scores[ref], ref))
    if worth:
        best = [ref for ref in best if ref in worth]  # the others are not among the rows
    there = rows.select_related("document__workspace").defer("around").in_bulk(best[:limit])
    return [FoundPassage(there[ref], scores[ref]) for ref in best[:limit] if ref in there]
