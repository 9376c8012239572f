"""Passages of a workspace's documents that say something about a query, best first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub.errors import NotFound
from memoryhub.llm.errors import EmbedderError, ModelNotLocal
from memoryhub.llm.two_encoders import TwoEncoders
from workspaces.documents.kind import DOCUMENTS
from workspaces.index import embedding
from workspaces.index.candidates import Where, find_candidates, look
from workspaces.index.words import bm25
from workspaces.leaving_machine import Reach
from workspaces.models import DocumentPassage, User, Workspace
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
    documents: Sequence[int] | None = None,
    arm: Arm = "hybrid",
) -> list[FoundPassage]:
    """The passages this person may see here, best first, none below ``floor`` but what is NEAR. NotFound for others.

    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    ``documents``: among these alone, by key. Words answer where the embedder fails. ``arm``, for measuring, is one of
    the two alone. One query of the index, one for the passages; the query is embedded.
    """
    where = look(workspace.pk, user.pk)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if reach.leaves and where.local_only:
        raise ModelNotLocal
    query = query.replace("\x00", " ").strip()[:QUERY_LENGTH]
    if not query or limit < 1:
        return []
    near = NEAR if where.active is not None and where.active.name == TwoEncoders.name else None
    found = _found(query, replace(where, personal=False), arm)
    scores = {
        ref: score
        for ref, score, cosine in found
        if (score >= floor and (by_words or near is None or cosine is None))
        or (near is not None and cosine is not None and cosine >= near)
    }
    best = sorted(scores, key=lambda ref: (-scores[ref], ref))
    rows = DocumentPassage.objects.filter(workspace=workspace, deleted_at=None).select_related("document")
    if documents is not None:
        rows = rows.filter(document__in=documents)
    limit = min(limit, MOST)
    if documents is None:
        best = best[:limit]
    there = rows.in_bulk(best)
    return [FoundPassage(there[ref], scores[ref]) for ref in best if ref in there][:limit]


def _found(query: str, where: Where, arm: Arm) -> list[tuple[int, float, float | None]]:
    """Passages, their scores and their cosines, in no order."""
    try:
        embedded = embedding.embed_query([query], where.active, local_only=where.local_only)
    except EmbedderError as error:
        logger.warning("Search of documents fell back to words: %s", error.code)
        embedded = None
    if embedded is None or arm == "words":
        shares = bm25(DOCUMENTS, query, where.params, CANDIDATES)
        return [(ref, _score(None, share), None) for ref, share in shares.items()]
    model, vectors = embedded
    with transaction.atomic() if where.indexed else nullcontext():
        found = find_candidates(query, (model, vectors[0]), where, CANDIDATES, kinds=(DOCUMENT,))
    if arm == "vector":
        return [(each.ref, each.cosine, each.cosine) for each in found if each.cosine is not None]
    return [(each.ref, _score(each.cosine, each.words), each.cosine) for each in found]


def _score(cosine: float | None, words: float) -> float:
    meaning = WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)
    return MEANING * meaning + WORDS * words
