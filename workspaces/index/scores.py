"""Scores of passages of one kind for a query.

They combine vectors and words on the scale that memories' scores have, so that results of several kinds can be merged.
"""

import logging
import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from memoryhub.database import queries
from memoryhub.llm.base import Vectors
from memoryhub.llm.bundled_embedder import E5_WEIGHS, ENGLISH, LENGTH, MULTILINGUAL, TwoEncoders
from memoryhub.llm.errors import EmbedderError
from workspaces.index import embedding
from workspaces.index.hybrid_search import SearchArea, bm25, find_candidates
from workspaces.index.question_gist import gist_of, with_gist
from workspaces.models.index import Kind

logger = logging.getLogger(__name__)
CANDIDATES = 200
# Weights of meaning and words in a score (docs/figures.md).
MEANING, WORDS = 0.70, 0.35
WORDS_AS_MEANING = 0.6  # cosine assumed for a full word match without a vector
FLOOR = 0.40  # minimum score of a passage related to the query
DOUBT = 0.10  # raise of the minimum cosine if the message surely asks nothing
EXCERPT = 600  # characters shown of a long text

Doubt = Callable[[Vectors], float]


class Scored(NamedTuple):
    """A passage with its score.

    ``ref``: its primary key. ``cosine``: None if only words match. ``margin``: how far the cosine is above the minimum
    of a related passage (``margins``), only with the bundled embedder. ``words``: its share of the query's word weight.
    """

    ref: int
    score: float
    cosine: float | None
    margin: float | None = None
    words: float = 0.0


def related(of: Kind, query: str, where: SearchArea) -> dict[int, float]:
    """Return the scores of passages related to the query, by primary key: at least FLOOR, or close in meaning.

    Without a working embedder only words are searched. Three queries and one embedding.
    """
    return above_floor(found(of, query, where))


def above_floor(scored: list[Scored], *, floor: float = FLOOR, by_words: bool = True) -> dict[int, float]:
    """Return the scores, by primary key, of the passages that match: by their score, or by their meaning alone.

    A passage matches if its score is at least ``floor`` or its ``margin`` at least 0. With ``by_words=False``, a
    passage that has a margin matches only by the margin, so that shared words alone, such as a name, are no match.
    """
    return {
        each.ref: each.score
        for each in scored
        if (each.score >= floor and (by_words or each.margin is None))
        or (each.margin is not None and each.margin >= 0)
    }


class Embedded(NamedTuple):
    """The vectors of a query: ``own``, and ``vector``, which is combined with that of its gist."""

    model: str
    vector: Vectors
    own: Vectors


def embedded_query(query: str, where: SearchArea) -> Embedded | None:
    """Return the query's vectors, or None if there is no embedder or it fails. Only words are searched then.

    The query's gist is included with the bundled embedder only, with which it was measured.
    """
    gist_query = gist_of(query) if _is_bundled(where) else query
    try:
        embedded = embedding.embed_query(
            [query] if gist_query == query else [query, gist_query], where.active, local_only=where.local_only
        )
    except EmbedderError as error:
        logger.warning("A search fell back to words: %s", error.code)
        return None
    return Embedded(embedded[0], with_gist(embedded[1]), embedded[1][0]) if embedded else None


def score_of(cosine: float | None, words: float) -> float:
    """Return the score of a passage. ``words``: its share of the query's word weight. ``cosine``: None without a
    vector.
    """
    meaning = WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)
    return MEANING * meaning + WORDS * words


def found(of: Kind, query: str, where: SearchArea, *, doubt: Doubt | None = None) -> list[Scored]:
    """Return the candidates for a query, by vectors and by words, with their scores.

    They are unordered, and include weak matches (see ``above_floor``). ``doubt``: a function of the query's vector that
    returns the probability (0 to 1) that nothing matches the query.
    """
    embedded = embedded_query(query, where)
    if embedded is None:
        shares = bm25(of, query, where.params, CANDIDATES)
        return [Scored(ref, score_of(None, share), None, words=share) for ref, share in shares.items()]
    with transaction.atomic() if where.indexed else nullcontext():
        candidates = find_candidates(of, query, (embedded.model, embedded.vector), where, CANDIDATES)
    near = [each.ref for each in candidates if each.cosine is not None]
    above: dict[int, float] = {}
    if near and _is_bundled(where):
        above = margins(of.number, near, where, embedded.model, embedded.own)
    less = DOUBT * doubt(embedded.own) if above and doubt else 0.0
    return [
        Scored(
            each.ref,
            score_of(each.cosine, each.words),
            each.cosine,
            above[each.ref] - less if each.ref in above else None,
            each.words,
        )
        for each in candidates
    ]


def _is_bundled(where: SearchArea) -> bool:
    return where.active is not None and where.active.name == TwoEncoders.name


def excerpt(text: str, query: str) -> str:
    """Return the text if it is short, else the part around the query's longest word."""
    if len(text) <= EXCERPT:
        return text.strip()
    lower = text.casefold()
    places = [
        lower.find(word) for word in sorted(re.findall(r"\w+", query.casefold()), key=len, reverse=True)
    ]
    at = max(0, next((place for place in places if place >= 0), 0) - EXCERPT // 3)
    cut = text[at : at + EXCERPT].strip()
    return f"{'…' if at else ''}{cut}{'…' if at + EXCERPT < len(text) else ''}"


Array = NDArray[Any]
# The minimum cosine of a related passage in a scope with one passage, and its rise per factor e of passages, because
# the nearest of many is nearer by chance (docs/figures.md).
LEAST, LEAST_OF_MORE = 0.23, 0.011
COUNTED_AT_MOST = 3000

_PART = "subvector({0}, {1}, {2})"
_ENGLISH, _MULTILINGUAL = ((part.start + 1, LENGTH) for part in (ENGLISH, MULTILINGUAL))
# For a stored vector {0} and the question's: the inner products of both parts, and the length of the English part.
PRODUCTS = (
    f"-({_PART.format('{0}', *_ENGLISH)} <#> {_PART.format('%(asked)s::halfvec', *_ENGLISH)}), "
    f"-({_PART.format('{0}', *_MULTILINGUAL)} <#> {_PART.format('%(asked)s::halfvec', *_MULTILINGUAL)}), "
    f"l2_norm({_PART.format('{0}', *_ENGLISH)})"
)
_OF_KIND = """
FROM workspaces_passagevector e
WHERE e.kind = %(kind)s::smallint AND e.live AND e.model = %(model)s::text AND e.place = ANY(%(places)s::bigint[])
"""
_NEAR = f"SELECT e.ref, {PRODUCTS.format('e.embedding')} {_OF_KIND} AND e.ref = ANY(%(refs)s::bigint[])"
_COUNT = f"SELECT count(*) FROM (SELECT 1 {_OF_KIND} LIMIT {COUNTED_AT_MOST}) counted"  # noqa: S608  constants only


class Asked(NamedTuple):
    """Two numbers derived from a question's vector, from which its cosines with stored vectors are computed."""

    english: float  # share of English in the question, 0 to 1
    scale: float  # factor from inner products with stored vectors to cosines


def read_asked(vector: Vectors) -> Asked:
    length = float(np.linalg.norm(vector[MULTILINGUAL]))
    scale = float(np.sqrt(E5_WEIGHS * (1 + E5_WEIGHS))) / length
    return Asked(float(np.linalg.norm(vector[ENGLISH])) * float(np.sqrt(E5_WEIGHS)) / length, scale)


def cosines(question: Asked, products: Array) -> dict[str, Array]:
    """Return the cosines of stored texts with the question: by the English encoder, by the multilingual one, and
    combined.

    ``products``: for each text a row with the columns of the SQL ``PRODUCTS``.
    """
    english, multilingual, share = products.T if len(products) else np.zeros((3, 0))
    multilingual = multilingual * question.scale / E5_WEIGHS
    share = np.minimum(1, share * float(np.sqrt(1 + E5_WEIGHS))) * question.english
    english = english * question.scale + (1 - share) * multilingual
    both = (english + E5_WEIGHS * multilingual) / (1 + E5_WEIGHS)
    return {"english": english, "multilingual": multilingual, "both": both}


def margins(kind: int, refs: list[int], where: SearchArea, model: str, own: Vectors) -> dict[int, float]:
    """Return, by primary key, how far each passage's cosine is above the minimum of a passage related to the question.

    A negative number means that it is below. ``own``: the question's vector without its gist. Two queries.
    """
    params = {
        "kind": kind,
        "model": model,
        "places": where.places,
        "refs": refs,
        "asked": own,
    }
    rows = queries.rows(_NEAR, params)
    [(count,)] = queries.rows(_COUNT, params)
    both = cosines(read_asked(own), np.array([products for _, *products in rows]))["both"]
    least = LEAST + LEAST_OF_MORE * math.log(max(1, count))
    return {ref: float(cosine) - least for (ref, *_), cosine in zip(rows, both, strict=True)}
