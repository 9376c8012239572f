"""Extraction without a model: statements in which a user plainly speaks of themselves, their project or their wishes.

It takes little and takes it whole: the user's own words, trimmed. What might be a request, a passing state, a guess, a
hypothetical case, a joke or somebody else's words is left. English only; other languages give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memories.judging.extraction.candidates import MAX_WORDS, Candidate, keep_best
from memories.judging.extraction.kinds import KIND_RULES
from memories.judging.extraction.patterns import (
    ASIDE,
    HYPOTHETICAL,
    JOKE,
    OPENING,
    PASSING,
    REASON,
    REMEMBER,
    REQUEST_TAIL,
    SPLIT,
    UNCERTAIN,
    UNRESOLVED,
)
from memories.judging.extraction.sentences import sentences

_MIN_WORDS = 2
_TAIL = re.compile(r"[\s,;:.!…]+$")
_CLAUSE_END = re.compile(r",? (?:because|since|so that|which|although|though|while|except|unless)\b|, ")


@dataclass(frozen=True)
class _Statement:
    text: str
    asked: bool  # the user asked for it to be remembered


def extract_with_rules(messages: Sequence[tuple[str, str]]) -> list[Candidate]:
    """Return up to eight candidates from the user's messages among (role, text), in the order they were said."""
    found: list[Candidate] = []
    for role, text in messages:
        if role == "user":
            found += _from_message(text)
    return keep_best(found)


def _from_message(text: str) -> list[Candidate]:
    found: list[Candidate] = []
    for sentence in sentences(text):
        if JOKE.search(sentence):  # it may take back what was just said
            found = found[:-1] if len(sentence.split()) <= 5 else found
            continue
        for statement in _statements(sentence):
            if candidate := _candidate(statement):
                found.append(candidate)
    return found


def _statements(sentence: str) -> Iterator[_Statement]:
    """Cut a sentence into clauses that can stand alone; questions and requests are left out."""
    if match := REMEMBER.match(sentence):
        rest = sentence[match.end() :]
        if not sentence.rstrip().endswith("?") and rest.strip():
            for clause in SPLIT.split(rest):
                yield _Statement(clause, asked=True)
        return
    sentence = _open(sentence)
    if match := REMEMBER.match(sentence):
        for clause in SPLIT.split(sentence[match.end() :]):
            yield _Statement(clause, asked=True)
        return
    if reason := REASON.match(sentence):
        yield _Statement(reason["reason"], asked=False)
        sentence = reason["rest"]
    if sentence.rstrip().endswith("?"):
        tail = REQUEST_TAIL.search(sentence)
        if tail is None:
            return
        sentence = sentence[: tail.start()]
    elif tail := REQUEST_TAIL.search(sentence):
        sentence = sentence[: tail.start()]
    if HYPOTHETICAL.search(sentence):
        return
    for clause in SPLIT.split(sentence):
        yield _Statement(clause, asked=False)


def _open(sentence: str) -> str:
    """Take off greetings and connecting words: "Hi! By the way, also: …"."""
    while match := OPENING.match(sentence):
        sentence = sentence[match.end() :]
    return sentence


def _candidate(statement: _Statement) -> Candidate | None:
    text = _shorten(_TAIL.sub("", ASIDE.sub("", _open(statement.text.strip()))).strip())
    if not text or "QUOTED" in text or len(text.split()) < _MIN_WORDS:
        return None
    if statement.asked:
        kind, importance, rule = _classify(text) or ("fact", 0.7, "remember")
        text = re.sub(r"^to (?=\w)", "", text) if rule == "remember" else text
        return _made(text, kind, max(importance, 0.8), "remember")
    if UNCERTAIN.search(text) or UNRESOLVED.search(text):
        return None
    classified = _classify(text)
    if classified is None or (classified[0] in ("fact", "preference") and PASSING.search(text)):
        return None
    return _made(text, *classified)


def _classify(text: str) -> tuple[str, float, str] | None:
    for rule in KIND_RULES:
        if rule.pattern.match(text) and not (rule.unless and rule.unless.search(text)):
            return rule.kind, rule.importance, rule.name
    return None


def _made(text: str, kind: str, importance: float, rule: str) -> Candidate | None:
    if len(text.split()) > MAX_WORDS:
        return None
    return Candidate(text[0].upper() + text[1:], kind, importance, {"rule": rule})


def _shorten(text: str) -> str:
    """Cut a long statement at the end of its first clause; as it is where none is found."""
    if len(text.split()) <= MAX_WORDS:
        return text
    cuts = [
        match.start()
        for match in _CLAUSE_END.finditer(text)
        if 4 <= len(text[: match.start()].split()) <= MAX_WORDS
    ]
    return text[: cuts[0]] if cuts else text
