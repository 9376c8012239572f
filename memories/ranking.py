"""How recalled memories are ordered. Pure: numbers in, numbers out; ``now`` is passed in."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

Ranking = Literal["hybrid", "semantic", "longterm", "lexical"]
RANKINGS: tuple[Ranking, ...] = ("hybrid", "semantic", "longterm", "lexical")
HALF_LIFE_DAYS = 30.0

# The hybrid's weights. Meaning leads, words correct it (names, numbers), age and importance break ties.
MEANING, WORDS, RECENCY, IMPORTANCE = 0.70, 0.25, 0.03, 0.02
WORDS_AS_MEANING = 0.6  # the cosine that two texts with all of the query's words in common usually have


def recency(created_at: datetime, accessed_at: datetime | None, now: datetime) -> float:
    """0.5^(age / 30 days), age from the later of created and accessed; 1 for what is new or in the future."""
    latest = max(created_at, accessed_at) if accessed_at else created_at
    days = max(0.0, (now - latest).total_seconds() / 86_400)
    return 0.5 ** (days / HALF_LIFE_DAYS)


def hybrid_parts(cosine: float | None, words: float, recent: float, importance: float) -> dict[str, float]:
    """What each signal adds to the hybrid score; their sum is the score.

    ``words`` is the share of the query's words that stand in the memory, 0 to 1. ``cosine`` is from -1 to 1; None
    where there is no vector to compare: then the words stand in for the meaning too.
    """
    return {
        "meaning": MEANING * (WORDS_AS_MEANING * words if cosine is None else max(0.0, cosine)),
        "words": WORDS * words,
        "recency": RECENCY * recent,
        "importance": IMPORTANCE * importance,
    }


def longterm_parts(cosine: float, recent: float, importance: float) -> dict[str, float]:
    """0.7·cosine + 0.2·recency + 0.1·importance."""
    return {"meaning": 0.7 * cosine, "recency": 0.2 * recent, "importance": 0.1 * importance}
