"""How well passages of one kind match a query, on the scale of memories' hybrid score: all stand in one list."""

from __future__ import annotations

import logging
import re
from contextlib import nullcontext
from typing import Literal

from django.db import transaction

from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.two_encoders import TwoEncoders
from workspaces.index import embedding
from workspaces.index.candidates import SearchArea, find_candidates
from workspaces.index.kinds import Kind
from workspaces.index.words import bm25

logger = logging.getLogger(__name__)
CANDIDATES = 200
# What meaning and words are worth (docs/recall.md).
MEANING, WORDS = 0.70, 0.35
WORDS_AS_MEANING = 0.6  # the cosine that stands for words alone, where no vector is there to compare
FLOOR = 0.40  # of the score: from it on a passage has to do with the query
NEAR = 0.30  # the bundled embedder's cosine that says the same, in every language (docs/recall.md)
EXCERPT = 600  # characters of a long text that are shown of what was found

Arm = Literal["hybrid", "words", "vector"]


def related(
    of: Kind,
    query: str,
    where: SearchArea,
    *,
    floor: float = FLOOR,
    by_words: bool = True,
    arm: Arm = "hybrid",
) -> dict[int, float]:
    """By key the score of what has to do with the query: none below ``floor`` but what is NEAR.

    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    Words answer where the embedder fails. ``arm``, for measuring, is one of the two alone. One query of the index; the
    query is embedded.
    """
    near = NEAR if where.active is not None and where.active.name == TwoEncoders.name else None
    return {
        ref: score
        for ref, score, cosine in _found(of, query, where, arm)
        if (score >= floor and (by_words or near is None or cosine is None))
        or (near is not None and cosine is not None and cosine >= near)
    }


def embedded_query(query: str, where: SearchArea) -> tuple[str, Vectors] | None:
    """None where nothing is embedded, or the embedder fails: words answer then."""
    try:
        embedded = embedding.embed_query([query], where.active, local_only=where.local_only)
    except EmbedderError as error:
        logger.warning("A search fell back to words: %s", error.code)
        return None
    return (embedded[0], embedded[1][0]) if embedded else None


def score_of(cosine: float | None, words: float) -> float:
    """Of a passage with this share of the query's weight in words; None: there is no vector to compare."""
    meaning = WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)
    return MEANING * meaning + WORDS * words


def _found(of: Kind, query: str, where: SearchArea, arm: Arm) -> list[tuple[int, float, float | None]]:
    """Passages, their scores and their cosines, in no order."""
    embedded = None if arm == "words" else embedded_query(query, where)
    if embedded is None:
        shares = bm25(of, query, where.params, CANDIDATES)
        return [(ref, score_of(None, share), None) for ref, share in shares.items()]
    with transaction.atomic() if where.indexed else nullcontext():
        found = find_candidates(query, embedded, where, CANDIDATES, kinds=(of.number,))
    if arm == "vector":
        return [(each.ref, each.cosine, each.cosine) for each in found if each.cosine is not None]
    return [(each.ref, score_of(each.cosine, each.words), each.cosine) for each in found]


def excerpt(text: str, query: str) -> str:
    """A text, or of a long one the part around the first place where the most telling word of the query stands."""
    if len(text) <= EXCERPT:
        return text.strip()
    lower = text.casefold()
    places = [
        lower.find(word) for word in sorted(re.findall(r"\w+", query.casefold()), key=len, reverse=True)
    ]
    at = max(0, next((place for place in places if place >= 0), 0) - EXCERPT // 3)
    cut = text[at : at + EXCERPT].strip()
    return f"{'…' if at else ''}{cut}{'…' if at + EXCERPT < len(text) else ''}"
