"""Cosines of stored texts and a question by the bundled embedder, for any pair of languages.

The cosine that orders candidates is lower between languages, as MiniLM says nothing there. Here e5 speaks for both
encoders where either text is not English, so that one threshold holds for every pair of languages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryhub.database import queries
from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import E5_WEIGHS, ENGLISH, LENGTH, MULTILINGUAL
from workspaces.index.candidates import SearchArea

Array = NDArray[Any]
# The cosine from which a passage has to do with a question, of one passage, and how much more each time there are e
# times as many: the nearest of many is nearer by chance (docs/figures.md).
LEAST, LEAST_OF_MORE = 0.23, 0.011
COUNTED_AT_MOST = 3000

_PART = "subvector({0}, {1}, {2})"
_ENGLISH, _MULTILINGUAL = ((part.start + 1, LENGTH) for part in (ENGLISH, MULTILINGUAL))
# Of a stored vector {0} and the question's own: the inner products of both parts, and the length of the English part.
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
    """The language and scale of a question's vector."""

    english: float  # how much of the question is English, 0 to 1
    scale: float  # of inner products with stored vectors, to cosines


def read_asked(vector: Vectors) -> Asked:
    length = float(np.linalg.norm(vector[MULTILINGUAL]))
    scale = float(np.sqrt(E5_WEIGHS * (1 + E5_WEIGHS))) / length
    return Asked(float(np.linalg.norm(vector[ENGLISH])) * float(np.sqrt(E5_WEIGHS)) / length, scale)


def cosines(asked: Asked, products: Array) -> dict[str, Array]:
    """The cosines by each encoder and their weighted mean, from a row of ``PRODUCTS`` for each text."""
    english, multilingual, share = products.T if len(products) else np.zeros((3, 0))
    multilingual = multilingual * asked.scale / E5_WEIGHS
    share = np.minimum(1, share * float(np.sqrt(1 + E5_WEIGHS))) * asked.english
    english = english * asked.scale + (1 - share) * multilingual
    both = (english + E5_WEIGHS * multilingual) / (1 + E5_WEIGHS)
    return {"english": english, "multilingual": multilingual, "both": both}


def margins(kind: int, refs: Iterable[int], where: SearchArea, model: str, own: Vectors) -> dict[int, float]:
    """By key how far each of these is above the least cosine with which a passage has to do with the question.

    ``own``: the question's vector without its gist's. Two queries.
    """
    given = {
        "kind": kind,
        "model": model,
        "places": queries.bigints(where.places),
        "refs": queries.bigints(refs),
        "asked": queries.halfvec(own),
    }
    rows = queries.rows(_NEAR, given)
    [(count,)] = queries.rows(_COUNT, given)
    both = cosines(read_asked(own), np.array([products for _, *products in rows]))["both"]
    least = LEAST + LEAST_OF_MORE * math.log(max(1, count))
    return {ref: float(cosine) - least for (ref, *_), cosine in zip(rows, both, strict=True)}
