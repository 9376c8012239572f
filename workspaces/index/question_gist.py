"""The gist of a question: the question without names.

Recall searches by the gist as well, because a passage may be about a subject without naming it (docs/recall.md). Does
not access the database.
"""

import re
from datetime import date

import numpy as np

from memoryhub.llm.base import Vectors

MONTHS = tuple(date(2000, number, 1).strftime("%B").lower() for number in range(1, 13))
_SHORT = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
MONTH = {name: number for number, name in enumerate(MONTHS, 1)} | _SHORT
# fmt: off
_ASKING = frozenset({
    "what", "when", "where", "who", "whom", "whose", "which", "why", "how", "did", "does", "do",
})
QUESTION_WORDS = _ASKING | {
    "is", "are", "was", "were", "has", "have", "had", "will", "would", "can", "could", "should",
    "may", "might", "shall", "am", "the", "a", "an", "of", "in", "on", "at", "to", "for", "with",
    "and", "or", "but", "be", "been", "being", "if", "i", "my", "me", "we", "our", "you", "your",
    "tell", "give", "show", "list", "name", "please", "remind",
}
# fmt: on
_TOKEN = re.compile(r"[^\W_][\w'\u2019-]*")
_POSSESSIVE = re.compile(r"['\u2019]s$|['\u2019]$")
SHARE = 0.5  # weight of the gist in a question's vector


def words_in(text: str) -> list[str]:
    return [_POSSESSIVE.sub("", word) for word in _TOKEN.findall(text)]


def names_in(text: str) -> frozenset[str]:
    """Return the names in a question, in lower case."""
    return frozenset(word.lower() for word in words_in(text) if is_name(word))


def gist_of(text: str) -> str:
    """Return the question without names and question words, or the question itself if nothing is left."""
    names = names_in(text)
    return " ".join(w for w in words_in(text) if w.lower() not in names and w.lower() not in _ASKING) or text


def with_gist(vectors: Vectors, share: float = SHARE) -> Vectors:
    """Return the weighted mean of a question's vector and its gist's, of length 1. ``share``: weight of the gist.

    ``vectors``: the question's vector and, if it has a gist, the gist's. With a single vector, that one is returned.
    """
    if len(vectors) == 1:
        return vectors[0]
    mean: Vectors = (1 - share) * vectors[0] + share * vectors[1]
    length = float(np.linalg.norm(mean))
    return mean / length if length > 1e-6 else vectors[0]


def is_name(word: str) -> bool:
    return (
        word[:1].isupper()
        and len(word) > 1
        and word.lower() not in QUESTION_WORDS
        and word.lower() not in MONTH
    )
