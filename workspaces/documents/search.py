"""Search over the passages of documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.db.models import QuerySet
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memoryhub.database import queries
from memoryhub.llm.registry import get_embedder
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.index.hybrid_search import SearchArea, area_within, bm25
from workspaces.index.scores import (
    CANDIDATES,
    FLOOR,
    WORDS_AS_MEANING,
    Doubt,
    Scored,
    above_floor,
    embedded_query,
    found,
    score_of,
)
from workspaces.models import (
    Document,
    DocumentPassage,
    PassageVector,
    User,
    Workspace,
)
from workspaces.models.documents import DOCUMENT, OWNED_HERE, OWNED_OWN, OWNED_PLACE
from workspaces.models.index import Kind

QUERY_LENGTH = 4000
MOST = 100
WORDS_FLOOR = 0.25  # minimum word score of a passage without a vector
# The order of passages (docs/figures.md). The mean cosine of the passages up to AROUND positions away is added to a
# passage's own, weighted by SHARE_AROUND. Then each passage scored above the STANDING_OUT-th best (of few passages,
# above the best quarter) gives its direct neighbors SHARE_BESIDE of the difference.
AROUND, SHARE_AROUND = 3, 0.3
STANDING_OUT, SHARE_BESIDE = 20, 0.3
_PLACES = """
SELECT p.id, p.document_id, p.number, d.passage_count
FROM workspaces_documentpassage p JOIN workspaces_document d ON d.id = p.document_id
WHERE p.id = ANY(%(refs)s::bigint[]) AND p.deleted_at IS NULL
  AND CASE WHEN p.owner_id IS NULL THEN p.workspace_id = %(workspace)s::bigint ELSE p.owner_id = %(owner)s::bigint END
"""
# A sort key: how far a passage and its neighbors are above the usual score, then its score with the passages around.
Worth = tuple[float, float]


@dataclass(frozen=True)
class FoundPassage:
    passage: DocumentPassage  # with its document
    score: float
    number: int = 0  # the number by which an answer already cites it


def find_passages(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int,
    policy: DataPolicy,
    floor: float = FLOOR,
    by_words: bool = True,
    doubt: Doubt | None = None,
) -> list[FoundPassage]:
    """Return the passages that match the query and that this person may see here, best first.

    ``policy``: the data policy, which decides whether personal passages are included. A passage near other matches is
    ranked above a single one, so the results are not in the order of their scores.

    ``floor``: the minimum score, which a passage with a very similar vector need not reach. ``by_words``: if False, a
    passage that only shares words with the query, such as a name, is no match (bundled embedder only). ``doubt``: a
    function of the query's vector that returns the probability that nothing matches; the higher it is, the closer a
    match must be.

    Without a working embedder only words are searched. Five queries and one embedding. Raises NotFound if the user is
    no member.
    """
    where, query = area_within(policy, workspace, user), _clean(query)
    if not query or limit < 1:
        return []
    scored = found(DOCUMENTS, query, where, doubt=doubt)
    wanted = above_floor(scored, floor=floor, by_words=by_words)
    wanted |= _scores_without_vector([each for each in scored if each.ref not in wanted], where)
    if not wanted:
        return []
    owner = user.pk if where.personal else 0
    params = {"refs": [each.ref for each in scored], "workspace": workspace.pk, "owner": owner}
    worth = _sort_keys(queries.rows(_PLACES, params), scored)
    rows = within_policy(DocumentPassage.objects.live(), workspace, user, policy)
    return _best(rows, wanted, worth, min(limit, MOST))


def _scores_without_vector(scored: list[Scored], where: SearchArea) -> dict[int, float]:
    """Return the scores of passages that match by words and have no vector yet. At most one query."""
    scores = {each.ref: each.score for each in scored if each.cosine is None and each.score >= WORDS_FLOOR}
    if not scores or where.active is None:
        return scores if where.active is None and get_embedder() is not None else {}
    vectors = PassageVector.objects.filter(place__in=where.places, kind=DOCUMENT, ref__in=list(scores))
    embedded = set(vectors.filter(model=where.active.label).values_list("ref", flat=True))
    return {ref: score for ref, score in scores.items() if ref not in embedded}


def find_in(
    documents: QuerySet[Document],
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int,
    policy: DataPolicy,
) -> list[FoundPassage]:
    """Return the passages of these documents that match the query best, however little.

    If they are fewer than ``limit``, passages from the beginning of the documents are added, because a request such as
    "summarise this" matches none. All vectors of these documents are compared. Words count only if the passage is among
    the workspace's best matches by words.
    """
    where, query = area_within(policy, workspace, user), _clean(query)
    rows = within_policy(DocumentPassage.objects.live(), workspace, user, policy).filter(
        document__in=documents
    )
    shares = bm25(DOCUMENTS, query, where.params, CANDIDATES)
    cosines: dict[int, float] = {}
    if embedded := embedded_query(query, where):
        vectors = PassageVector.objects.filter(
            place__in=where.places,
            kind=DOCUMENT,
            live=True,
            model=embedded.model,
            dimension=len(embedded.vector),
            ref__in=rows.values("pk"),
        ).annotate(distance=CosineDistance("embedding", HalfVector(embedded.vector)))
        nearest = vectors.order_by("distance").values_list("ref", "distance")[:CANDIDATES]
        cosines = {ref: 1 - distance for ref, distance in nearest}
    scored = [
        Scored(
            ref,
            score_of(cosines.get(ref), shares.get(ref, 0.0)),
            cosines.get(ref),
            words=shares.get(ref, 0.0),
        )
        for ref in {*cosines, *shares}
    ]
    scores = {each.ref: each.score for each in scored}
    places = rows.filter(pk__in=list(scores)).values_list(
        "pk", "document", "number", "document__passage_count"
    )
    best = _best(rows, scores, _sort_keys(list(places), scored), limit)
    passage_ids = [each.passage.pk for each in best]
    first = rows.exclude(pk__in=passage_ids).select_related("document").order_by("number", "document")
    return best + [FoundPassage(passage, 0.0) for passage in first[: limit - len(best)]]


def _clean(query: str) -> str:
    return query.replace("\x00", " ").strip()[:QUERY_LENGTH]


def _sort_keys(places: Sequence[tuple[Any, ...]], scored: list[Scored]) -> dict[int, Worth]:
    """Return a sort key for each passage, by the passage's primary key. Matches near other matches sort higher.

    ``places``: each passage's primary key, its document, its number in the document, and the document's number of
    passages. A passage without a known cosine gets the lowest known one.
    """
    farthest = min((each.cosine for each in scored if each.cosine is not None), default=None)
    known = {each.ref: each for each in scored}
    cosines: dict[tuple[int, int], float] = {}
    for ref, document, number, _count in places:
        cosine = known[ref].cosine if farthest is not None else WORDS_AS_MEANING * known[ref].words
        cosines[document, number] = farthest or 0.0 if cosine is None else cosine
    read: dict[tuple[int, int], float] = {}
    for ref, document, number, count in places:
        around = range(max(0, number - AROUND), max(number + 1, min(count, number + AROUND + 1)))
        mean = fmean(cosines.get((document, other), farthest or 0.0) for other in around)
        cosine = cosines[document, number] + SHARE_AROUND * mean
        read[document, number] = score_of(cosine, known[ref].words)
    best = sorted(read.values(), reverse=True)[: max(1, min(STANDING_OUT, len(read) // 4))]
    usual = min(best, default=0.0)
    above = {place: max(0.0, score - usual) for place, score in read.items()}
    return {
        ref: (
            above[document, number]
            + SHARE_BESIDE * sum(above.get((document, number + step), 0.0) for step in (-1, 1)),
            read[document, number],
        )
        for ref, document, number, _count in places
    }


def _best(
    rows: QuerySet[DocumentPassage], scores: dict[int, float], worth: dict[int, Worth], limit: int
) -> list[FoundPassage]:
    """Return at most ``limit`` of the rows that have a score, best first: by the sort key ``worth``, then by score.

    Passages without a sort key are not visible.
    """
    visible = [ref for ref in scores if ref in worth]
    best = sorted(visible, key=lambda ref: (worth[ref], scores[ref], -ref), reverse=True)
    there = rows.select_related("document__workspace").defer("around").in_bulk(best[:limit])
    return [FoundPassage(there[ref], scores[ref]) for ref in best[:limit] if ref in there]


DOCUMENTS = Kind(
    number=DOCUMENT,
    name="document passage",
    model=DocumentPassage,
    place=OWNED_PLACE,
    words="documents_counted_words",
    here=OWNED_HERE,
    own=OWNED_OWN,
    text="text",
    heading="heading",
)
