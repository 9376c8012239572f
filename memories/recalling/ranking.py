"""Scores of recalled memories, by weights that docs/figures.md explains."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Literal

from workspaces.index.question_gist import SHARE

Ranking = Literal["hybrid", "semantic", "longterm", "lexical"]
RANKINGS: tuple[Ranking, ...] = ("hybrid", "semantic", "longterm", "lexical")
HALF_LIFE_DAYS = 30.0

WORDS_AS_MEANING = 0.6  # usual cosine of two texts that share all words of the query

SMALL_TALK_AT = 200  # memories; the size of the workspace in which the injection threshold was measured
PER_HALVING = 0.04  # how much lower the best unrelated memory scores in a workspace of half the size


@dataclass(frozen=True)
class Weights:
    """The weight of each signal in the hybrid ranking. Other values than the defaults are only for measurements."""

    meaning: float = 0.70  # cosine of the question, and of its gist, with the memory
    gist: float = SHARE  # the share of the gist, the question without names and question words, in its vector
    words: float = 0.35  # share of the question's BM25 weight that the memory carries
    date: float = 0.20  # the question refers to a day; the memory is of that day, or (half) of the week after
    time: float = 0.10  # the question asks when, and the memory speaks of a time
    number: float = 0.07  # the question asks how many, how much or how long, and the memory has a number
    person: float = 0.15  # the question names one person, and the memory is about them
    asking: float = -0.07  # the memory ends in a question mark
    recency: float = 0.02  # breaks ties
    importance: float = 0.02

    def without(self, signal: str) -> Weights:
        """Return the weights with one signal switched off. Raises TypeError if there is no signal of this name."""
        return replace(self, **{signal: 0.0})


WEIGHTS = Weights()
SIGNALS: tuple[str, ...] = tuple(signal.name for signal in fields(Weights))


def recency(created_at: datetime, accessed_at: datetime | None, now: datetime) -> float:
    """Return 0.5^(age / 30 days). The age is counted from creation or last access, whichever is later."""
    latest = max(created_at, accessed_at) if accessed_at else created_at
    days = max(0.0, (now - latest).total_seconds() / 86_400)
    return float(0.5 ** (days / HALF_LIFE_DAYS))


def hybrid_parts(
    cosine: float | None,
    words: float,
    *,
    date: float = 0.0,
    time: bool = False,
    number: bool = False,
    person: bool = False,
    asking: bool = False,
    recent: float,
    importance: float,
    weights: Weights = WEIGHTS,
) -> dict[str, float]:
    """Return the contribution of each signal to the hybrid score, which is their sum.

    Zero contributions are left out, except of meaning and words. ``words`` and ``date`` are from 0 to 1. ``cosine`` is
    estimated from ``words`` if it is None, because there is no vector.
    """
    parts = {
        "meaning": weights.meaning * (WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)),
        "words": weights.words * words,
        "date": weights.date * date,
        "time": weights.time * time,
        "number": weights.number * number,
        "person": weights.person * person,
        "asking": weights.asking * asking,
        "recency": weights.recency * recent,
        "importance": weights.importance * importance,
    }
    return {name: value for name, value in parts.items() if value or name in {"meaning", "words"}}


def longterm_parts(cosine: float, recent: float, importance: float) -> dict[str, float]:
    return {"meaning": 0.7 * cosine, "recency": 0.2 * recent, "importance": 0.1 * importance}


def injection_threshold(base: float, memories: int) -> float:
    """Return the minimum score for the model: ``base`` from 200 memories on, and lower in smaller workspaces."""
    if memories >= SMALL_TALK_AT:
        return base
    return max(0.0, base - PER_HALVING * math.log2(SMALL_TALK_AT / max(1, memories)))
