"""Whether a found memory is put before the model: a decision of its own, apart from the order. Pure.

Two things must be so. The question asks for something that memory may hold: small talk does not, nor does what any
model knows. And the memory answers it. The first is read off the question's own e5 vector by small networks, and so
are two of its kinds: advice that would hang on what somebody once said, and questions about the person's own affairs.
The second is a logistic sum of both encoders' cosines, of how far a memory is behind the nearest, of how much it sounds
like a wish of somebody's own, of those kinds, and of the products of each two of these. All of it is fitted
(tests/bench/fit_using.py) and holds in every language that e5 reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memories.judging import nets
from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import E5_WEIGHS, ENGLISH, MULTILINGUAL

FILE = Path(__file__).with_suffix(".npz")
STRONG = 0.80  # how sure it is of what a receipt calls Strong
LEAST_SCORE, LEAST_SURE = 0.25, 0.02  # below either a memory has nothing to do with what was looked up
CERTAIN = 0.88  # so sure that the score does not matter
LARGER = 5.0  # times what e5's numbers are: the networks are fitted to that
PLAINLY = 6.0  # how much more than an answer, by the strictest measure, what was not asked for has to be
DOUBT = 3.0
MOST = 6.0  # beyond this a network is as sure as it can be
HEADS = ("asks", "advice", "mine")
PARTS = ("inner", "inner_bias", "outer", "outer_bias")

Nets = dict[str, Vectors]


class Fitted(NamedTuple):
    heads: tuple[Nets, ...]  # of HEADS
    wish: Vectors  # (384,) over a stored e5 vector
    weights: Vectors  # of the columns of ``columns``, the last added


class Question(NamedTuple):
    """What the embedder's vector of a question says. The first three are logits: small talk is below 0."""

    asks: float
    advice: float
    mine: float
    english: float  # how much of it is, 0 to 1
    scale: float  # of inner products with what is stored, to cosines


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        heads = tuple({part: file[f"{head}_{part}"].astype(np.float32) for part in PARTS} for head in HEADS)
        return Fitted(heads, file["wish"], file["weights"])


def said_by(heads: Sequence[Nets], own: Vectors) -> Vectors:
    """The logit of each head for each of these e5 vectors of length 1: (heads, rows)."""
    said = [nets.logits(LARGER * own, head).mean(axis=0) for head in heads]
    return np.clip(np.stack(said), -MOST, MOST)


def read(asked: Vectors, heads: Sequence[Nets]) -> Question:
    own = asked[MULTILINGUAL]
    length = float(np.linalg.norm(own))
    asks, advice, mine = (float(said) for said in said_by(heads, own[None] / length)[:, 0])
    scale = float(np.sqrt(E5_WEIGHS * (1 + E5_WEIGHS))) / length
    english = float(np.linalg.norm(asked[ENGLISH])) * float(np.sqrt(E5_WEIGHS)) / length
    return Question(asks, advice, mine, english, scale)


def columns(question: Question, products: Vectors) -> Vectors:
    """Of each memory seven measures, and the products of each two. ``products``: a row a memory, the inner products of
    the question's vector with the two parts of its statement's, of that with ``Fitted.wish``, and the length of its
    English part. Of what is not English in either, the other encoder speaks for both."""
    english, multilingual, wish, share = products.T
    multilingual = multilingual * question.scale / E5_WEIGHS
    share = np.minimum(1, share * float(np.sqrt(1 + E5_WEIGHS))) * question.english
    english = english * question.scale + (1 - share) * multilingual
    both = (english + E5_WEIGHS * multilingual) / (1 + E5_WEIGHS)
    same = np.ones(len(both))
    kinds = (question.advice / MOST * same, question.mine / MOST * same)
    measures = [english, multilingual, both.max() - both, wish, *kinds, share]
    pairs = [one * other for at, one in enumerate(measures) for other in measures[at:]]
    return np.stack(measures + pairs, axis=1).astype(np.float32)


def sureness(asked: Vectors, products: Sequence[Sequence[float]], *, looked_up: bool = False) -> list[float]:
    """How sure it is, 0 to 1, that each of these memories is wanted by what was asked: the less sure of both things.

    What is ``looked_up`` asks by itself, in mere words too, and is judged strictly.
    """
    if not products:
        return []
    heads, _wish, weights = fitted()
    question, given = read(asked, heads), np.array(products, dtype=np.float32)
    strict = columns(strictly(question), given) @ weights[:-1] + weights[-1]
    answers = columns(question, given) @ weights[:-1] + weights[-1]
    least = strict if looked_up else both_so(question.asks, answers, strict)
    sure: list[float] = (1 / (1 + np.exp(-np.clip(least, -MOST, MOST)))).tolist()
    return sure


def strictly(question: Question) -> Question:
    """Taken for a question about one's own affairs, whose answer is far nearer than anything else."""
    return question._replace(advice=-MOST, mine=MOST)


def both_so(asks: float, answers: Vectors, strict: Vectors) -> Vectors:
    """It asks, and the memory answers. Where that is so plainly the answer the network may be wrong, but not by far."""
    least: Vectors = np.maximum(np.minimum(answers, asks), np.minimum(strict - PLAINLY, asks + DOUBT))
    return least


def has_to_do(score: float, sure: float | None) -> bool:
    """Whether a memory is an answer to what a model or a person looked up, ``sure`` as for that. By the strict measure
    one is either sure, or it may still be near enough by its score: that asks for less than going before a model
    unasked does."""
    if sure is None:
        return score >= LEAST_SCORE
    return sure >= CERTAIN or (score >= LEAST_SCORE and sure >= LEAST_SURE)
