"""Recognition of messages that no model needs to read: "ok thanks", "Guten Morgen!", "👍".

``courtesies.txt`` contains the words of SPEC's languages in four paragraphs: thanks, greetings and interjections; words
that may confirm a question and mean nothing else; words by which a question asks for confirmation or to remember
something; words that may accompany those of the third.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

LONGEST = 60  # characters
_WORD = re.compile(r"[^\W_]+")
_ASKS = re.compile("[?\uff1f\u061f]")
# The answers to a question that deny it, or only acknowledge it.
_NO_YES = frozenset({"no", "nope", "ok", "okay", "k", "kk", "got", "fine", "alright"})


def says_nothing(text: str, before: Sequence[tuple[str, str]] = ()) -> bool:
    """Return whether the message is only a courtesy.

    A bare "yes" is none if the last message of ``before`` is a question of the assistant.
    """
    text = unicodedata.normalize("NFC", text).strip().casefold()
    if len(text) > LONGEST:
        return False
    courtesies, agreements, *_questions = _words()
    words = set(_WORD.findall(text))
    if not words <= courtesies | agreements:
        return False
    role, asked = before[-1] if before else ("", "")
    is_asked = role == "assistant" and bool(_ASKS.search(asked))
    return not is_asked or bool(words & courtesies) or not words


def agrees(text: str) -> bool:
    """Return whether a short message begins with "yes" and contains no question."""
    text = unicodedata.normalize("NFC", text).strip().casefold()
    words = _WORD.findall(text)
    if not words or len(text) > LONGEST or _ASKS.search(text):
        return False
    return words[0] in _words()[1] - _NO_YES


def asks_back(question: str) -> bool:
    """Return whether a question states nothing itself, as "Is that right?" and "Shall I remember that?". Offers do not
    count.
    """
    words = set(_WORD.findall(unicodedata.normalize("NFC", question).casefold().replace("\u2019", "'")))
    _courtesies, _agreements, asking, beside = _words()
    return bool(words & asking) and words <= asking | beside


@functools.cache
def _words() -> tuple[frozenset[str], ...]:
    """Return the set of words of each paragraph."""
    text = Path(__file__).with_name("courtesies.txt").read_text(encoding="utf-8").casefold()
    return tuple(frozenset(_WORD.findall(part)) for part in text.split("\n\n"))
