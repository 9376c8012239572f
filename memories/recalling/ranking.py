"""How recalled memories are ordered. Pure: numbers in, numbers out; ``now`` is passed in.

The hybrid's weights were chosen by measurement on public conversations (docs/figures.md has the table and what each is
worth); the plateau is flat, half or double of any one of them moves little.
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

WORDS_AS_MEANING = 0.6  # the cosine that two texts with all of the query's words in common usually have

SMALL_TALK_AT = 200  # memories: the size of the workspaces in which the injection threshold was measured
PER_HALVING = 0.04  # how much less noise reaches in a workspace of half the size


@dataclass(frozen=True)
class Weights:
    """What each signal of the hybrid is worth; others than the defaults are for measuring (``--without``)."""

    meaning: float = 0.70  # cosine of the question, and of its gist, with the memory
    gist: float = SHARE  # the share of the gist, the question without names and question words, in its vector
    words: float = 0.35  # share of the question's BM25 weight that the memory carries
    date: float = (
        0.20  # the question means a day, and the memory is of that day, or less of the week after it
    )
    time: float = 0.10  # the question asks when, and the memory speaks of a time
    number: float = 0.07  # the question asks how many, how much or how long, and the memory has a number
    person: float = 0.15  # the question names one person, and the memory is about them
    asking: float = -0.07  # the memory ends in a question mark: it asks more than it says
    recency: float = 0.02  # breaks ties between what fits equally well
    importance: float = 0.02

    def without(self, signal: str) -> Weights:
        """The same with one signal switched off; a TypeError for a name that is none."""
        return replace(self, **{signal: 0.0})


WEIGHTS = Weights()
SIGNALS: tuple[str, ...] = tuple(signal.name for signal in fields(Weights))


def recency(created_at: datetime, accessed_at: datetime | None, now: datetime) -> float:
    """0.5^(age / 30 days), age from the later of created and accessed; 1 for what is new or in the future."""
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
    """What each signal adds to the hybrid score; their sum is the score. Signals that say nothing are left out.

    ``words`` is the share of the question's weight in words that the memory carries, ``date`` how near its day is to
    the one that the question means, both 0 to 1. ``cosine`` is from -1 to 1; None where there is no vector to
    compare: then the words stand in for the meaning too.
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
    """0.7·cosine + 0.2·recency + 0.1·importance."""
    return {"meaning": 0.7 * cosine, "recency": 0.2 * recent, "importance": 0.1 * importance}


def injection_threshold(base: float, memories: int) -> float:
    """The hybrid score from which a memory goes before the model, in a place of so many memories.

    ``base`` holds from 200 memories on. The best of few unrelated memories scores lower than the best of many, by
    about 0.04 for every halving (docs/figures.md: the curves), so a small workspace asks for less.
    """
    if memories >= SMALL_TALK_AT:
        return base
    return max(0.0, base - PER_HALVING * math.log2(SMALL_TALK_AT / max(1, memories)))
