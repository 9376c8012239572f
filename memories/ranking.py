"""How recalled memories are ordered. Pure: numbers in, numbers out; ``now`` is passed in.

The hybrid's weights were chosen by measurement on public conversations (docs/recall.md has the table and what each is
worth); the plateau is flat, half or double of any one of them moves little.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal

Ranking = Literal["hybrid", "semantic", "longterm", "lexical"]
RANKINGS: tuple[Ranking, ...] = ("hybrid", "semantic", "longterm", "lexical")
HALF_LIFE_DAYS = 30.0

MEANING = 0.70  # cosine of the question, and of its gist, with the memory
WORDS = 0.35  # share of the question's BM25 weight that the memory carries
DATE = 0.20  # the question means a day, and the memory is of that day
WHEN = 0.10  # the question asks when, and the memory speaks of a time
PERSON = 0.15  # the question names one person, and the memory is about them
RECENCY, IMPORTANCE = 0.02, 0.02  # break ties between what fits equally well
WORDS_AS_MEANING = 0.6  # the cosine that two texts with all of the query's words in common usually have

SMALL_TALK_AT = 200  # memories: the size of the workspaces in which the injection threshold was measured
PER_HALVING = 0.05  # how much less noise reaches in a workspace of half the size


def recency(created_at: datetime, accessed_at: datetime | None, now: datetime) -> float:
    """0.5^(age / 30 days), age from the later of created and accessed; 1 for what is new or in the future."""
    latest = max(created_at, accessed_at) if accessed_at else created_at
    days = max(0.0, (now - latest).total_seconds() / 86_400)
    return 0.5 ** (days / HALF_LIFE_DAYS)


def hybrid_parts(
    cosine: float | None,
    words: float,
    *,
    date: bool = False,
    when: bool = False,
    person: bool = False,
    recent: float,
    importance: float,
) -> dict[str, float]:
    """What each signal adds to the hybrid score; their sum is the score. Signals that say nothing are left out.

    ``words`` is the share of the question's weight in words that the memory carries, 0 to 1. ``cosine`` is from -1
    to 1; None where there is no vector to compare: then the words stand in for the meaning too.
    """
    parts = {
        "meaning": MEANING * (WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)),
        "words": WORDS * words,
        "date": DATE * date,
        "time": WHEN * when,
        "person": PERSON * person,
        "recency": RECENCY * recent,
        "importance": IMPORTANCE * importance,
    }
    return {name: value for name, value in parts.items() if value or name in {"meaning", "words"}}


def longterm_parts(cosine: float, recent: float, importance: float) -> dict[str, float]:
    """0.7·cosine + 0.2·recency + 0.1·importance."""
    return {"meaning": 0.7 * cosine, "recency": 0.2 * recent, "importance": 0.1 * importance}


def injection_threshold(base: float, memories: int) -> float:
    """The hybrid score from which a memory goes before the model, in a place of so many memories.

    ``base`` holds from 200 memories on. The best of few unrelated memories scores lower than the best of many, by
    about 0.05 for every halving (docs/recall.md: the curves), so a small workspace asks for less.
    """
    if memories >= SMALL_TALK_AT:
        return base
    return max(0.0, base - PER_HALVING * math.log2(SMALL_TALK_AT / max(1, memories)))
