"""Whose words a statement is made of: the person's, or those of a tool, a memory or a document the model was shown.

Pure, and deliberately simple: shared content words, cut to their beginnings so that "deploys" and "deployed" are one.
In doubt it asks for a review, which costs a click; the other mistake lets a web page write into somebody's memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SAID = 0.6  # share of a statement's words from which it counts as the person's own
TAKEN = 0.5  # share of the words they did not say, from which it counts as somebody else's
_STEM = 5
_KEPT = 12  # characters of a word that is kept to be compared later: more than any of these have
_WORD = re.compile(r"[^\W_]+")
_FUNCTION_WORDS = """
a an the and or but of to in on at by for from with as is are was were be been has have had do does did will would can
could should may might must not no it its this that these those there their they them he she his her we us our you your
i my me mine user users person wants want likes like said says prefers prefer
"""
_COMMON = frozenset(_FUNCTION_WORDS.split())


def is_taken_from(
    statement: str, *, said: Iterable[str], shown: Iterable[str], shown_more: bool = False
) -> bool:
    """Whether the statement repeats what was ``shown`` to the model and nobody ``said``.

    A person's own words win: what they repeat or confirm in so many words is theirs. ``shown_more``: there was more
    than ``shown`` has, so whatever else it says may be from there.
    """
    words = _words(statement)
    if not words:
        return shown_more
    own = words & _words(" ".join(said))
    if len(own) >= SAID * len(words):
        return False
    foreign = words - own
    return shown_more or len(foreign & _words(" ".join(shown))) >= TAKEN * len(foreign)


def words_to_keep(text: str) -> set[str]:
    """All that has to be kept of a long text to know later whether something is taken from it."""
    return {word[:_KEPT] for word in _WORD.findall(text.casefold())}


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold()) if word not in _COMMON}
