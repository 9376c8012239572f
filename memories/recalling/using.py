"""Whether a found memory is put before the model: a decision of its own, apart from the order. Pure.

A question says by its own vector whether it asks for what somebody said of themselves, or for advice that would hang
on it; small talk does neither. Both are fitted heads over the embedder's vector, so that they hold in every language.
With the cosines of both encoders they give how sure it is that a memory matters (tests/bench/fit_using.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import E5_WEIGHS, MULTILINGUAL

FILE = Path(__file__).with_suffix(".npz")
STRONG = 0.80  # how sure it is of what a receipt calls Strong
LEAST_SCORE, LEAST_SURE = 0.25, 0.02  # below either a memory has nothing to do with what was looked up
CERTAIN = 0.57  # so sure that the score does not matter


class Fitted(NamedTuple):
    personal: Vectors  # (385,), the last added: 1 for what memories answer, -1 for small talk
    advice: Vectors  # (385,): 1 for advice asked for, -1 for other questions and small talk
    weights: Vectors  # (6,), of the columns of ``features``, the last added


class Read(NamedTuple):
    """What the embedder's vector of a question says."""

    personal: float
    advice: float
    scale: float  # of inner products with what is stored, to cosines


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name] for name in Fitted._fields))


def read(asked: Vectors, heads: tuple[Vectors, Vectors]) -> Read:
    own = asked[MULTILINGUAL]
    length = float(np.linalg.norm(own))
    personal, advice = (float(own @ head[:-1] / length + head[-1]) for head in heads)
    return Read(personal, advice, float(np.sqrt(E5_WEIGHS * (1 + E5_WEIGHS))) / length)


def features(question: Read, english: Vectors, multilingual: Vectors) -> Vectors:
    """Of each memory: both cosines, both heads, and how far it is behind the nearest. From the inner products of the
    question's vector with the two parts of the memories' statements."""
    english = english * question.scale
    multilingual = multilingual * question.scale / E5_WEIGHS
    both = (english + E5_WEIGHS * multilingual) / (1 + E5_WEIGHS)
    same = np.ones(len(both))
    columns = [english, multilingual, question.personal * same, question.advice * same, both.max() - both]
    return np.stack(columns, axis=1).astype(np.float32)


def sureness(asked: Vectors, products: Sequence[tuple[float, float]]) -> list[float]:
    """How sure it is, 0 to 1, that each of these memories is wanted by what was asked."""
    if not products:
        return []
    personal, advice, weights = fitted()
    inner = np.array(products, dtype=np.float32)
    rows = features(read(asked, (personal, advice)), inner[:, 0], inner[:, 1])
    sure: list[float] = (1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1])))).tolist()
    return sure


def has_to_do(score: float, sure: float | None) -> bool:
    """Whether a memory is an answer to what a model or a person looked up: mere words as often as a question, of which
    the heads, fitted to messages, are seldom sure. So it asks for less than going before a model unasked does."""
    if sure is None:
        return score >= LEAST_SCORE
    return sure >= CERTAIN or (score >= LEAST_SCORE and sure >= LEAST_SURE)
