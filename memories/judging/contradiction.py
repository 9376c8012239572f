"""The check whether two similar texts can make different statements about the same thing."""

from __future__ import annotations

import re
import unicodedata

# A word; in scripts without spaces, each pair of neighbouring characters.
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
SHARED = 3  # minimum number of common parts, because two greetings have none or two
SHARE = 0.5  # minimum share of the shorter text's parts


def about_the_same(a: str, b: str) -> bool:
    """Return whether two texts that are no rewordings of each other share enough words to contradict each other.

    Words are compared, not vectors, because greetings and thanks are similar in every embedder, and state nothing that
    could be wrong.
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
