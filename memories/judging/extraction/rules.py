"""Extraction without a model: statements of users about themselves, their people, their project and their wishes.

Candidates are the user's own words, trimmed. The networks of `keeping` choose the clauses. This module limits them to
eight, and leaves out those that the same message takes back or corrects.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from memories.judging.corrections import surest
from memories.judging.duplicates import normalise
from memories.judging.encoder import Encoder, ReadOnce
from memories.judging.extraction.candidates import MAX_TEXT, MAX_WORDS, Candidate, keep_best
from memories.judging.extraction.keeping import LEAST as LEAST_REPLY
from memories.judging.extraction.keeping import (
    LONGEST,
    Judged,
    chosen,
    judge,
    question_of,
    statement,
    states_fact,
)
from memories.judging.secret_filter import find_personal, find_secret
from memories.judging.sentences import JOINED, own_part

LEAST = 0.5  # probability from which a clause is kept; docs/figures.md compares thresholds
MORE_IN_SHORT = 0.2  # added to the threshold in short messages, which give little context
SHORT = 30  # maximum characters of a short message
FAINT = 0.05  # how much the threshold is lowered for a clause that may replace a memory
LEAST_FAINT = 0.2  # minimum probability of such a clause if its sentence also takes something back
TAKEN_BACK = 0.5
AT_ONCE = 32  # messages encoded together, about 10 MB of states
IMPORTANCE = {"fact": 0.6, "preference": 0.6, "instruction": 0.8, "decision": 0.75, "event": 0.7}
_BLANKS = re.compile(r"\s+")
_VALUE = re.compile(r"\d+(?:[:.,]\d+)*")


def extract_with_rules(
    messages: Sequence[tuple[str, str]],
    encoder: Encoder | None,
    *,
    before: Sequence[tuple[str, str]] = (),
    least: float = LEAST,
    faint: bool = False,
) -> list[Candidate]:
    """Return up to eight candidates from the user's messages among (role, text), in order.

    If there are none, a short reply to the question that ends the last message of ``before`` is returned with that
    question. ``faint`` adds up to eight uncertain candidates, marked in their details, which are stored only if they
    replace a memory. Returns none without an encoder. Raises EmbedderError if the encoder fails.
    """
    texts = [text for role, text in messages if role == "user"]
    found = [each for of_message in _from_messages(texts, encoder, least) for each in of_message]
    sure = keep_best([each for each in found if not each.details.get("faint")])
    if not sure and encoder is not None and before and before[-1][0] == "assistant" and texts:
        sure = _from_reply(before[-1][1], texts[0], encoder)
    return sure + keep_best([each for each in found if each.details.get("faint")]) if faint else sure


def extract_from_each(texts: Sequence[str], encoder: Encoder | None) -> list[list[Candidate]]:
    """Return up to eight candidates for each of several unrelated messages of users.

    Calls the encoder twice per 32 messages. Raises EmbedderError if the encoder fails.
    """
    found = []
    for at in range(0, len(texts), AT_ONCE):
        for each in _from_messages(texts[at : at + AT_ONCE], encoder, LEAST):
            found.append(keep_best([candidate for candidate in each if not candidate.details.get("faint")]))
    return found


def _from_reply(before: str, answer: str, encoder: Encoder) -> list[Candidate]:
    """Return the reply with its question as a candidate, if together they state something worth remembering."""
    question, answer = question_of(before), _BLANKS.sub(" ", answer).strip()
    if not question or not answer or len(answer) > LONGEST:
        return []
    chance = states_fact(question, answer, encoder)
    text = statement(question, answer)
    if chance < LEAST_REPLY or len(text.split()) > MAX_WORDS:
        return []
    details = {"rule": "reply", "chance": round(chance, 2)}
    return [Candidate(text, "fact", IMPORTANCE["fact"], details)]


def _from_messages(texts: Sequence[str], encoder: Encoder | None, least: float) -> list[list[Candidate]]:
    """Return the candidates of each message, encoding first the clauses of all messages and then possible
    corrections.
    """
    if encoder is None:
        return [[] for _ in texts]
    texts = [unicodedata.normalize("NFC", own_part(text)) for text in texts]
    read = ReadOnce(encoder)
    judged = [_Message(text, clauses, least) for text, clauses in zip(texts, judge(texts, read), strict=True)]
    read.states([sentence for each in judged for sentence in each.later_sentences()])
    return [each.candidates(read) for each in judged]


class _Message:
    """A message with the clauses that are likely to be kept."""

    def __init__(self, text: str, judged: list[Judged], least: float) -> None:
        sentences = {each.sentence for each in judged}
        secret = {span for span in sentences if _is_delicate(text[slice(*span)])}
        judged = [each for each in judged if each.sentence not in secret]
        self.text, self.judged = text, judged
        least += MORE_IN_SHORT if len(text.strip()) <= SHORT else 0
        useful = [each for each in _without_taking_back(judged) if not each.lacks_topic]
        self.kept = chosen(useful, least)
        sure = {each.sentence for each in self.kept}
        backs = {each.sentence for each in judged if each.takes_back >= TAKEN_BACK}
        faintly = [each for each in useful if each.chance >= least - FAINT or each.sentence in backs]
        self.unsure = [each for each in chosen(faintly, LEAST_FAINT, beside=0) if each.sentence not in sure]

    def later_sentences(self) -> list[str]:
        """Return the sentences that may correct an earlier one."""
        likely = sorted({each.sentence for each in (*self.kept, *self.unsure)})
        return [self.text[start:end] for start, end in likely[1:]]

    def candidates(self, encoder: Encoder) -> list[Candidate]:
        kept, faint = _corrected(self.text, self.kept, self.unsure, encoder)
        kept = _not_taken_back(kept, self.judged)
        made = [_made(self.text, each) for each in kept]
        made += [_made(self.text, each, faint=True) for each in faint]
        return [candidate for candidate in made if candidate]


def _is_delicate(sentence: str) -> bool:
    """Return whether the sentence holds a credential or personal number, which a clause cut from it might hide from the
    filter.
    """
    return bool(find_secret(sentence) or find_personal(sentence))


def _without_taking_back(judged: list[Judged]) -> list[Judged]:
    """Keep only the second clause of "Scratch that, deploy on Friday", with the higher probability of it and of the
    whole.
    """
    backs = [each for each in judged if each.takes_back >= TAKEN_BACK and each.start == each.sentence[0]]
    holding = [each for each in judged if any(_holds(each, back) for back in backs)]
    rest = [each for each in judged if each not in holding]
    left = [each for each in holding if not any(other.sentence == each.sentence for other in rest)]
    for each in rest:
        both = [other.chance for other in holding if _holds(other, each)]
        left.append(replace(each, chance=max([each.chance, *both])))
    return left


def _holds(outer: Judged, inner: Judged) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _not_taken_back(kept: list[Judged], judged: list[Judged]) -> list[Judged]:
    """Drop the clause right before a sentence that takes it back."""
    backs = [each.start for each in judged if each.takes_back >= TAKEN_BACK]
    before = {max((each.end for each in kept if each.end <= at), default=-1) for at in backs}
    return [each for each in kept if each.end not in before]


def _corrected(
    text: str, kept: list[Judged], unsure: list[Judged], encoder: Encoder
) -> tuple[list[Judged], list[Judged]]:
    """Return the clauses to keep and the uncertain ones, without those that a later sentence replaces.

    An uncertain clause that replaces an earlier one is kept: "Deploy on Monday. Actually no, on Friday."
    """
    left: list[Judged] = []
    faint: list[Judged] = []
    for each in sorted([*kept, *unsure], key=lambda each: each.start):
        earlier = [other for other in left if other.sentence != each.sentence]
        olds = [text[other.start : other.end] for other in earlier]
        at = surest(olds, text[slice(*each.sentence)], encoder) if olds else None
        if at is not None:
            left.remove(earlier[at])
        (left if at is not None or each in kept else faint).append(each)
    return left, faint


def _made(text: str, judged: Judged, *, faint: bool = False) -> Candidate | None:
    """Return a clause as a candidate, preceded by its topic if it does not name it: "My sister: she is a nurse"."""
    said = _BLANKS.sub(" ", text[judged.start : judged.end]).strip()
    if judged.topic is not None:
        topic = text[slice(*judged.topic)]
        colon = "\uff1a" if JOINED.match(topic[-1]) else ": "
        said = f"{topic}{colon}{said}"
    if len(said.split()) > MAX_WORDS or len(said) > MAX_TEXT or len(normalise(said)) < 2:
        return None
    details = {"rule": "head", "chance": round(judged.chance, 2)} | ({"faint": True} if faint else {})
    return Candidate(said[0].upper() + said[1:], judged.kind, IMPORTANCE[judged.kind], details)
