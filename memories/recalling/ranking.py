"""Scores of recalled memories. Does not access the database or the clock.

The hybrid's weights were chosen by measurement on public conversations; docs/figures.md has the table and what each
signal contributes. Half or double of any one weight changes little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Literal

from workspaces.index.gist import SHARE

Ranking = Literal["hybrid", "semantic", "longterm", "lexical"]
RANKINGS: tuple[Ranking, ...] = ("hybrid", "semantic", "longterm", "lexical")
HALF_LIFE_DAYS = 30.0

WORDS_AS_MEANING = 0.6  # usual cosine of two texts that share all words of the query

SMALL_TALK_AT = 200  # memories:the size of the workspace in which the injection threshold was measured
PER_HALVING = 0.04  # how much lower the best unrelated memory scores in a workspace of half the size


@dataclass(frozen=True)
class Weights:
    """Weights of the signals of the hybrid ranking. Non-default values are for measuring (``--without``)."""

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
    """Return 0.5^(age / 30 days), with the age since creation or last access, whichever is later."""
    latest = max(created_at, accessed_at) if accessed_at else created_at
    days = max(0.0, (now - latest).total_seconds() / 86_400)
    return 0.5 ** (days / HALF_LIFE_DAYS)


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
    """Return what each signal adds to the hybrid score, which is the sum. Signals that add nothing are left out.

    ``words`` is the share of the question's BM25 weight that the memory carries, ``date`` how near its day is to the
    day in the question, both from 0 to 1. ``cosine`` is from -1 to 1, or None without a vector; then the words stand in
    for the meaning too.
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
    """Return the parts of the long-term score: 0.7·cosine + 0.2·recency + 0.1·importance."""
    return {"meaning": 0.7 * cosine, "recency": 0.2 * recent, "importance": 0.1 * importance}


def injection_threshold(base: float, memories: int) -> float:
    """Return the minimum hybrid score of a memory that is given to the model, for this number of memories.

    ``base`` applies from 200 memories on. In a smaller workspace the best unrelated memory scores lower, by about 0.04
    for every halving (curves in docs/figures.md), and the threshold falls as much.
    """
    if memories >= SMALL_TALK_AT:
        return base
    return max(0.0, base - PER_HALVING * math.log2(SMALL_TALK_AT / max(1, memories)))
