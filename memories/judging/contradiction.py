"""Whether two texts that are near each other can say different things of the same."""

from __future__ import annotations

import re
import unicodedata

# A word, or of a script without blanks each character and the next.
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
SHARED = 3  # parts that both have, at least: two greetings have none or two
SHARE = 0.5  # of the shorter one's parts


def about_the_same(a: str, b: str) -> bool:
    """Whether two that are no rewordings of each other may contradict.

    Asked of the words, not of vectors: greetings and thanks are near to each other in every embedder, and say nothing
    that could be wrong.
    """
    one, other = _parts(a), _parts(b)
    shared = len(one & other)
    return shared >= SHARED and shared >= SHARE * min(len(one), len(other))


def _parts(text: str) -> set[str]:
    parts: set[str] = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.search(word):
            parts.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            parts.add(word)
    return parts
