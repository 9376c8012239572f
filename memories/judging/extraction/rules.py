"""Extraction without a model: what users say of themselves, their people, their project and their wishes.

It takes little and takes it whole: the user's own words, trimmed. Which of them is for a head over the encoder's
states (`keeping`); here is only what is done with them: no more than eight, none that was taken back, a value that
was corrected in its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memories.judging.duplicates import normalise
from memories.judging.encoder import Encoder
from memories.judging.extraction.candidates import MAX_TEXT, MAX_WORDS, Candidate, keep_best
from memories.judging.extraction.keeping import Judged, chosen, judge
from memories.judging.extraction.sentences import own_part

LEAST = 0.65  # chance from which a clause is kept; docs/recall.md has what others would give
TAKEN_BACK = 0.5
IMPORTANCE = {"fact": 0.6, "preference": 0.6, "instruction": 0.8, "decision": 0.75, "event": 0.7}
_BLANKS = re.compile(r"\s+")
_VALUE = re.compile(r"\d+(?:[:.,]\d+)*")


def extract_with_rules(
    messages: Sequence[tuple[str, str]], encoder: Encoder | None, *, least: float = LEAST
) -> list[Candidate]:
    """Return up to eight candidates from the user's messages among (role, text), in the order they were said.

    Without an encoder none. Raises EmbedderError.
    """
    found: list[Candidate] = []
    for role, text in messages:
        if role == "user" and encoder is not None:
            found += _from_message(own_part(text), encoder, least)
    return keep_best(found)


def _from_message(text: str, encoder: Encoder, least: float) -> list[Candidate]:
    judged = judge(text, encoder)
    kept = _not_taken_back(chosen(judged, least), judged)
    made = (_made(text[each.start : each.end], each) for each in kept)
    return [candidate for candidate in made if candidate]


def _not_taken_back(kept: list[Judged], judged: list[Judged]) -> list[Judged]:
    """Without what stands right before a sentence that takes it back."""
    backs = [each.start for each in judged if each.takes_back >= TAKEN_BACK]
    before = {max((each.end for each in kept if each.end <= at), default=-1) for at in backs}
    return [each for each in kept if each.end not in before]


def _made(text: str, judged: Judged) -> Candidate | None:
    text = _BLANKS.sub(" ", text).strip()
    if len(text.split()) > MAX_WORDS or len(text) > MAX_TEXT or len(normalise(text)) < 2:
        return None
    details = {"rule": "head", "chance": round(judged.chance, 2)}
    return Candidate(text[0].upper() + text[1:], judged.kind, IMPORTANCE[judged.kind], details)
