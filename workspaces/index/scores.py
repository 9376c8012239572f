"""Scores of passages of one kind for a query, on the scale of memories' hybrid score: all are in one list."""

from __future__ import annotations

import logging
import re
from contextlib import nullcontext
from typing import Literal, NamedTuple

from django.db import transaction

from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.two_encoders import TwoEncoders
from workspaces.index import embedding
from workspaces.index.candidates import SearchArea, find_candidates
from workspaces.index.gist import gist_of, with_gist
from workspaces.index.kinds import Kind
from workspaces.index.words import bm25

logger = logging.getLogger(__name__)
CANDIDATES = 200
# What meaning and words are worth (docs/figures.md).
MEANING, WORDS = 0.70, 0.35
WORDS_AS_MEANING = 0.6  # the cosine that stands for words alone, where no vector is there to compare
FLOOR = 0.40  # of the score: from it on a passage has to do with the query
NEAR = 0.30  # the bundled embedder's cosine that says the same, in every language (docs/figures.md)
EXCERPT = 600  # characters of a long text that are shown of what was found

Arm = Literal["hybrid", "words", "vector"]


class Scored(NamedTuple):
    """A passage found; ``cosine`` is None for what words alone brought in."""

    ref: int
    score: float
    cosine: float | None


def related(of: Kind, query: str, where: SearchArea) -> dict[int, float]:
    """By key the score of what has to do with the query: none below FLOOR but what is NEAR.

    Words answer where the embedder fails. One query of the index; the query is embedded.
    """
    return above_floor(found(of, query, where), where)


def above_floor(
    scored: list[Scored], where: SearchArea, *, floor: float = FLOOR, by_words: bool = True
) -> dict[int, float]:
    """By key the scores from ``floor`` on, and those of what is NEAR.

    ``by_words``: with the bundled embedder shared words may bring in what is not near, such as a name in a search.
    """
    near = NEAR if _is_bundled(where) else None
    return {
        ref: score
        for ref, score, cosine in scored
        if (score >= floor and (by_words or near is None or cosine is None))
        or (near is not None and cosine is not None and cosine >= near)
    }


def embedded_query(query: str, where: SearchArea, *, gist: bool = True) -> tuple[str, Vectors] | None:
    """The query's vector, with its ``gist``'s where the embedder is the bundled one, on which that was measured.

    None where nothing is embedded, or the embedder fails: words answer then.
    """
    said = gist_of(query) if gist and _is_bundled(where) else query
    try:
        embedded = embedding.embed_query(
            [query] if said == query else [query, said], where.active, local_only=where.local_only
        )
    except EmbedderError as error:
        logger.warning("A search fell back to words: %s", error.code)
        return None
    return (embedded[0], with_gist(embedded[1])) if embedded else None


def score_of(cosine: float | None, words: float) -> float:
    """Return the score of a passage with this share of the query's words; None: there is no vector to compare."""
    meaning = WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)
    return MEANING * meaning + WORDS * words


def found(of: Kind, query: str, where: SearchArea, *, arm: Arm = "hybrid") -> list[Scored]:
    """The best of both arms, however far, in no order. ``arm``, for measuring, is one of the two alone."""
    embedded = None if arm == "words" else embedded_query(query, where, gist=arm == "hybrid")
    if embedded is None:
        shares = bm25(of, query, where.params, CANDIDATES)
        return [Scored(ref, score_of(None, share), None) for ref, share in shares.items()]
    with transaction.atomic() if where.indexed else nullcontext():
        candidates = find_candidates(query, embedded, where, CANDIDATES, kinds=(of.number,))
    if arm == "vector":
        return [Scored(each.ref, each.cosine, each.cosine) for each in candidates if each.cosine is not None]
    return [Scored(each.ref, score_of(each.cosine, each.words), each.cosine) for each in candidates]


def _is_bundled(where: SearchArea) -> bool:
    return where.active is not None and where.active.name == TwoEncoders.name


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
