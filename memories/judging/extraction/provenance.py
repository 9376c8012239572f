"""Whose words a statement rests on: a person's, or those of something else that the model was shown.

Pure. Each sentence that stood before the model is compared with the statement, by the cosine of their vectors. The
statement is a person's if their nearest sentence is near enough, no other source is nearer, and all its names and
numbers stand in their words. In doubt it waits for review, which costs a click; the other mistake lets a document
write into somebody's memory. Measured in docs/security.md; thresholds chosen on half of the cases of
``tests/memories/writing/resting_cases.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

import numpy as np

from memories.judging.encoder import Encoder
from memories.judging.extraction.courtesy import agrees, says_nothing
from memories.judging.extraction.grounding import is_grounded, names_in, numbers_in
from memories.judging.extraction.sentences import MAX_READ, sentences
from memoryhub.llm.base import Speaker, Vectors
from memoryhub.llm.e5.languages import meaning_of

LEAST = 0.35  # cosine from which a person's sentence carries a statement
PLAIN = 0.7  # the same where something stood before the model that cannot be compared with
ASKED = 0.8  # share of the cosine that a question of theirs counts with: to ask is not to say
OWN_WORDS = 0.6  # share of a statement's words from which it is plainly the person's, without an encoder
TAKEN = 0.5  # share of the other words from which it is plainly somebody else's
MOST_SENTENCES = 80  # of one side that are read, 3 ms each: those that share most words, and the newest
LONGEST_PIECE = 400  # characters
MOST_OF_A_TEXT = 40_000  # characters of one source
T = TypeVar("T")
_STEM = 5
_KEPT = 12  # characters of a word that is kept to be compared later: more than any of these have
_WORD = re.compile(r"[^\W_]+")
_PARTS = re.compile("(?<=[.!?…])\\s+|[\u3002\uff01\uff1f\n|;]+")
_CLAUSES = re.compile(
    r"[,;:]\s+|\s+(?:and|but|und|aber|et|mais|y|pero|e|ma|mas|en|maar|i|ale|и|но|ve|ama|và)\s+",
    re.IGNORECASE,
)
_QUESTION = re.compile("[?\uff1f\u061f]['\"”»)]*$")
_FUNCTION_WORDS = """
a an the and or but of to in on at by for from with as is are was were be been has have had do does did will would can
could should may might must not no it its this that these those there their they them he she his her we us our you your
i my me mine user users person wants want likes like said says prefers prefer
"""
_COMMON = frozenset(_FUNCTION_WORDS.split())
# Their words are made of what they were shown, the person's among it, so they are never nearer than that.
_SECOND_HAND = frozenset({Speaker.MODEL, Speaker.SYSTEM})


@dataclass(frozen=True)
class Source:
    """A text that stood before the model. ``id``: the public id of the document, memory or other thing it is part of.

    ``text`` is None where the thing is gone, changed or none of the reader's business. ``is_bag``: its words alone.
    ``is_plain``: of a person's, that they said the statement in nearly these words.
    """

    speaker: Speaker
    text: str | None
    id: str = ""
    is_bag: bool = False
    is_plain: bool = False


@dataclass(frozen=True)
class Provenance:
    """Everything that was put before a model, by who said it; people's messages newest first."""

    sources: tuple[Source, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """People's own words, and what they confirmed."""
        return tuple(each.text for each in self.sources if each.speaker is Speaker.PERSON and each.text)

    def plus(self, *sources: Source) -> Provenance:
        return Provenance((*self.sources, *sources))

    def rests_on(
        self, statement: str, encoder: Encoder | None, *, today: date | None = None, names: str = ""
    ) -> Source:
        """Return the source that carries a statement best; a person's only if it is stored without review.

        ``today`` and ``names`` as for ``is_grounded``. Costs a reading of up to 160 sentences by the encoder, none
        where a person said the statement in the same words. Raises EmbedderError.
        """
        person = Source(Speaker.PERSON, statement, is_plain=True)
        others = [each for each in self.sources if each.speaker is not Speaker.PERSON]
        unseen = [each for each in others if each.text is None]
        for each in unseen:
            if each.speaker is Speaker.WEB:  # any of it may be what strangers wrote
                return each
        grounded = is_grounded(statement, said=self.said, today=today, names=names)
        said = [text for text in self.said if not says_nothing(text)]
        own = [part for text in said for sentence in _sentences(text) for part in _with_clauses(sentence)]
        compared = _Compared(statement, encoder)
        if grounded and any(compared.words_in(each) for each in own if not is_asked(each)):
            return person
        support = compared.support_of(own)
        best, source = compared.best_of([each for each in others if each.speaker not in _SECOND_HAND], own)
        if grounded and support >= (PLAIN if unseen else LEAST) and best <= support:
            return replace(person, is_plain=support >= PLAIN)
        if source is not None and best >= LEAST:
            return source
        return unseen[0] if unseen else Source(Speaker.MODEL, None)


NOTHING = Provenance()


def nearest_of(statement: str, texts: Sequence[str], encoder: Encoder | None) -> tuple[int, float]:
    """Return which of the texts, of which there are some, is nearest to the statement, and its cosine."""
    cosines = _Compared(statement, encoder).cosines(texts)
    best = max(range(len(texts)), key=lambda at: cosines[at])
    return best, cosines[best]


class _Compared:
    """A statement compared with sentences, by the encoder or, without one, by shared words."""

    def __init__(self, statement: str, encoder: Encoder | None) -> None:
        self._statement, self._encoder = statement, encoder
        self._words = words_of(statement)
        self._names = {name[:_STEM] for name in names_in(statement)}
        self._numbers = numbers_in(statement)

    def words_in(self, sentence: str) -> bool:
        """Whether all of the statement's words, of which there are two or more, stand in this sentence."""
        return len(self._words) > 1 and self._words <= words_of(sentence)

    def support_of(self, own: Sequence[str]) -> float:
        """How near the nearest of a person's sentences is. A question counts with ``ASKED`` of that."""
        own = self._likeliest(own)
        shares = [self._share(text) for text in own]
        weights = [ASKED if is_asked(text) else 1.0 for text in own]
        near = [
            max(cosine, share if share >= OWN_WORDS and len(self._words) > 1 else 0.0)
            for cosine, share in zip(self.cosines(own), shares, strict=True)
        ]
        return max((one * weight for one, weight in zip(near, weights, strict=True)), default=0.0)

    def best_of(self, others: Sequence[Source], own: Sequence[str]) -> tuple[float, Source | None]:
        """The nearest other source and how near it is. One that lacks a name or number of the statement is not."""
        best: tuple[float, Source | None] = (0.0, None)
        pieces: list[tuple[str, Source]] = []
        for source in others:
            if source.text is None:
                continue
            if source.is_bag:
                best = max(best, (self._share_of_bag(source.text, own), source), key=lambda pair: pair[0])
                continue
            stems = {word[:_STEM] for word in _WORD.findall(source.text.casefold())}
            if not self._numbers - numbers_in(source.text) and not self._names - stems:
                pieces += [(piece, source) for piece in _pieces(source.text)]
        chosen = self._likeliest(pieces, text_of=lambda pair: pair[0])
        near = zip(self.cosines([piece for piece, _source in chosen]), chosen, strict=True)
        return max([best, *((cosine, source) for cosine, (_p, source) in near)], key=lambda pair: pair[0])

    def cosines(self, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        if self._encoder is None:
            return [self._share(text) for text in texts]
        read = self._encoder.states([self._statement, *texts])
        vectors = meaning_of(np.stack([_mean(each.vectors) for each in read]))
        return [float(cosine) for cosine in vectors[1:] @ vectors[0]]

    def _share(self, text: str) -> float:
        return len(self._words & words_of(text)) / len(self._words) if self._words else 0.0

    def _share_of_bag(self, bag: str, own: Sequence[str]) -> float:
        """Of the words that nobody here said, where these are many, how many the bag has."""
        foreign = self._words - words_of(" ".join(own))
        if len(foreign) <= (1 - OWN_WORDS) * len(self._words):
            return 0.0
        share = len(foreign & words_of(bag)) / len(foreign)
        return share if share >= TAKEN else 0.0

    def _likeliest(self, all_of_them: Sequence[T], text_of: Callable[[T], str] = str) -> Sequence[T]:
        """Half of the first, the newest, and half of those others that share most words."""
        if len(all_of_them) <= MOST_SENTENCES:
            return all_of_them
        half = MOST_SENTENCES // 2
        rest = sorted(all_of_them[half:], key=lambda each: -len(self._words & words_of(text_of(each))))
        return [*all_of_them[:half], *rest[:half]]


def confirmed(message: str, before: str) -> str:
    """What a person's short "Yes, exactly" confirms: the question before it, with the sentence that leads to it."""
    if not agrees(message):
        return ""
    asked = list(_sentences(before))
    if not asked or not is_asked(asked[-1]):
        return ""
    return f"{' '.join(asked[-2:-1])}\n{_QUESTION.sub('.', asked[-1])}".strip()


def is_asked(sentence: str) -> bool:
    return bool(_QUESTION.search(sentence))


def words_to_keep(text: str) -> set[str]:
    """All that has to be kept of a long text to know later whether something is taken from it."""
    return {word[:_KEPT] for word in _WORD.findall(text.casefold())}


def words_of(text: str) -> set[str]:
    """Content words, cut to their beginnings, so that "deploys" and "deployed" are one."""
    return {word[:_STEM] for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _sentences(text: str) -> list[str]:
    """The sentences of a message, without code, logs and quoted lines."""
    text = text[:MAX_READ].replace("\u2019", "'")
    return [text[start:end] for start, end, _quotes in sentences(text)]


def _with_clauses(sentence: str) -> list[str]:
    """A sentence, and its clauses where it has several: "the deadline is March 15 and I am vegetarian"."""
    clauses = [part for part in _CLAUSES.split(sentence) if len(part.split()) > 1]
    return [sentence, *clauses] if len(clauses) > 1 and not is_asked(sentence) else [sentence]


def _pieces(text: str) -> list[str]:
    """Everything that a text says, prose or not, sentence by sentence; a longer one in parts."""
    parts = [part for line in _PARTS.split(text[:MOST_OF_A_TEXT]) if (part := line.strip())]
    return [part[at : at + LONGEST_PIECE] for part in parts for at in range(0, len(part), LONGEST_PIECE)]


def _mean(states: Vectors) -> Vectors:
    mean: Vectors = states.astype(np.float32).mean(axis=0) if len(states) else np.zeros(384, np.float32)
    length: Vectors = mean / max(float(np.linalg.norm(mean)), 1e-6)
    return length
