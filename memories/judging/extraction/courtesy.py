"""Messages that no model need read: "ok thanks", "Guten Morgen!", "👍". Pure.

``courtesies.txt`` has the words of SPEC's languages: first thanks, greetings and interjections; then words that may
confirm a question and mean nothing else; then words by which a question asks for confirmation or for something to be
remembered; last words that may stand beside them.
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
# Of the words that answer a question those that deny it, or only show that somebody has read it.
_NO_YES = frozenset({"no", "nope", "ok", "okay", "k", "kk", "got", "fine", "alright"})


def says_nothing(text: str, before: Sequence[tuple[str, str]] = ()) -> bool:
    """Whether the message is only courtesy. A bare "yes" says something where the assistant's last message of those
    ``before`` it asked.
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
    """Whether a short message begins with yes, and asks nothing."""
    text = unicodedata.normalize("NFC", text).strip().casefold()
    words = _WORD.findall(text)
    if not words or len(text) > LONGEST or _ASKS.search(text):
        return False
    return words[0] in _words()[1] - _NO_YES


def asks_back(question: str) -> bool:
    """Whether a question states nothing itself: "Is that right?", "Shall I remember that?". An offer does not."""
    words = set(_WORD.findall(unicodedata.normalize("NFC", question).casefold().replace("\u2019", "'")))
    _courtesies, _agreements, asking, beside = _words()
    return bool(words & asking) and words <= asking | beside


@functools.cache
def _words() -> tuple[frozenset[str], ...]:
    """The words of each paragraph."""
    text = Path(__file__).with_name("courtesies.txt").read_text(encoding="utf-8").casefold()
    return tuple(frozenset(_WORD.findall(part)) for part in text.split("\n\n"))
