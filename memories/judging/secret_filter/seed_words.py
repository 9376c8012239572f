"""The words of a wallet: twelve and more in a row that all stand in a list of BIP-39, as no talk has them."""

from __future__ import annotations

import re
from functools import cache

from mnemonic import Mnemonic

from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.folding import fold

_LISTS = (
    "english",
    "spanish",
    "french",
    "italian",
    "portuguese",
    "czech",
)  # scripts that part words by blanks
_LEAST = 12  # words of the shortest phrase
_DIFFERENT = 8  # of them, at least: nobody draws one word again and again
_STEP = _LEAST // 2  # of so many words one is looked at: two of any phrase's are
_MOST = 200  # runs of such words that a text may have and be no phrase: a list of words is read no further
_WORD = re.compile("[a-z]+")
# What may stand between two of them: blanks, a comma, a hyphen, the number of the next.
_BETWEEN = re.compile(r"[\s,;.|()-]{0,6}(?:[0-9]{1,2}[\s.):-]{1,3})?")


@cache
def _listed() -> dict[str, frozenset[str]]:
    """The lists' words, folded as the text will be. Read once, when a first text is looked through."""
    return {language: frozenset(map(fold, Mnemonic(language).wordlist)) for language in _LISTS}


@cache
def _any() -> frozenset[str]:
    return frozenset[str]().union(*_listed().values())


def find_seed_words(lower: str) -> Finding | None:
    """Return the first phrase of a wallet in `lower`, a folded text in small letters, or None."""
    listed = _any()
    words = _WORD.findall(lower)
    places: list[re.Match[str]] = []
    at = judged = 0
    while at + _STEP < len(words):
        if words[at] in listed and words[at + _STEP] in listed and _run(words, at) >= _DIFFERENT:
            places = places or list(_WORD.finditer(lower))
            near = places[max(at - _STEP, 0) : at + 2 * _LEAST]
            for words_of in _listed().values():
                if words_of.issuperset(words[at : at + _STEP]) and (found := _phrase(lower, near, words_of)):
                    return found
            judged += 1
            if judged > _MOST:
                return Finding("too_many_statements", near[0].start(), near[-1].end())
            at += _STEP
        at += _STEP
    return None


def _run(words: list[str], at: int) -> int:
    """How many different words are in the row about this one that stands in any list; of a row too short, none."""
    listed, first, last = _any(), at, at
    while first and at - first < _LEAST and words[first - 1] in listed:
        first -= 1
    while last < len(words) and last - at < _LEAST and words[last] in listed:
        last += 1
    return len(set(words[first:last])) if last - first >= _LEAST else 0


def _phrase(lower: str, places: list[re.Match[str]], listed: frozenset[str]) -> Finding | None:
    run: list[re.Match[str]] = []
    for place in places:
        if place.group() not in listed:
            run = []
            continue
        joined = run and _BETWEEN.fullmatch(lower, run[-1].end(), place.start())
        run = [*run[1 - _LEAST :], place] if joined else [place]
        if len(run) == _LEAST and len({word.group() for word in run}) >= _DIFFERENT:
            return Finding("seed_phrase", run[0].start(), place.end())
    return None
