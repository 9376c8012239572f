"""The source of a statement: a person's own words, or something else that the model was shown.

Pure. Each sentence that the model was given is compared with the statement, by the cosine of their vectors. The
statement is a person's if their nearest sentence is near enough, no other source is nearer, and all its names and
numbers are in their words. In doubt it waits for review, which costs a click; the opposite mistake lets a document
write into somebody's memory. Measured in docs/figures.md; thresholds chosen on half of the cases of
``tests/memories/writing/resting_cases.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

import numpy as np

from memories.judging.encoder import Encoder, ReadOnce
from memories.judging.extraction.courtesy import agrees, asks_back, says_nothing
from memories.judging.extraction.grounding import is_grounded, names_in, numbers_in
from memories.judging.sentences import MAX_READ, sentences
from memoryhub.llm.base import Speaker, Vectors
from memoryhub.llm.e5 import meaning_of

LEAST = 0.35  # cosine from which a person's sentence carries a statement
PLAIN = 0.7  # the same where something stood before the model that cannot be compared with
ASKED = 0.8  # share of the cosine that a question of theirs counts with: to ask is not to say
OWN_WORDS = 0.6  # share of a statement's words from which it is plainly the person's, without an encoder
TAKEN = 0.5  # share of the other words from which it is plainly somebody else's
LEAST_CLAUSE = 2  # content words of a clause that is looked at for itself
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
_STOPS = re.compile("(?<=[.!?…])\\s+|[;\u3002\uff01\uff1f\uff1b\n]+\\s*")
_JOINS = re.compile(
    r"[,:]\s+(?:and |but |und |aber |et |mais |y |pero |e |ma |mas |en |maar )?|\s+(?:and|but|while|whereas|because|who"
    r"|und|aber|während|weil|et|mais|y|pero|porque|e|ma|mas|en|maar|i|ale|и|но|ve|ama|và)\s+",
    re.IGNORECASE,
)
_QUESTION = re.compile("[?\uff1f\u061f]['\"”»)]*$")
_FUNCTION_WORDS = """
a an the and or but of to in on at by for from with as is are was were be been has have had do does did will would can
could should may might must not no it its this that these those there their they them he she his her we us our you your
i my me mine user users person wants want likes like said says prefers prefer
"""
_COMMON = frozenset(_FUNCTION_WORDS.split())
# Words for "the user" in statements; the last are of languages without spaces.
_USER_WORDS = """
user users nutzer nutzers nutzerin benutzer benutzers utilisateur utilisatrice usuario usuaria usuário usuária utente
gebruiker użytkownik użytkownika użytkowniczka kullan\u0131c\u0131 kullan\u0131c\u0131n\u0131n
пользователь пользователя пользователю användaren المستخدم उपयोगकर्ता
"""
_THE_USER = frozenset(_USER_WORDS.split())
_JOINED_USER = re.compile("用户|用戶|ユーザー|사용자|người dùng", re.IGNORECASE)
# Their words are made of what they were shown, the person's among it, so they are never nearer than that.
_SECOND_HAND = frozenset({Speaker.MODEL, Speaker.SYSTEM})


@dataclass(frozen=True)
class Source:
    """A text that stood before the model. ``id``: the public id of the document, memory or other thing it is part of.

    ``text`` is None where the thing is gone, changed or none of the reader's business. ``is_bag``: its words alone.
    ``is_plain``: of a person's, that they said the statement in nearly these words. ``is_confirmed``: the model asked,
    and they said yes. ``author``: key of the person who wrote it; 0 for who asks.
    """

    speaker: Speaker
    text: str | None
    id: str = ""
    is_bag: bool = False
    is_plain: bool = False
    is_confirmed: bool = False
    author: int = 0


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
        self,
        statement: str,
        encoder: Encoder | None,
        *,
        today: date | None = None,
        names: str = "",
        by: int = 0,
    ) -> Source:
        """Return the source that carries a statement best; a person's, with the id and author of their message, only
        if it is stored without review. Each clause has to be carried, and all of them by words of one person.

        ``today`` and ``names`` as for ``is_grounded``; ``by`` is the key of who is named so. Costs a reading of up to
        160 sentences by the encoder, none where a person said the statement in the same words. Raises EmbedderError.
        """
        read = ReadOnce(encoder) if encoder else None
        clauses = clauses_of(statement)
        found: list[Source] = []
        for part in dict.fromkeys([statement, *clauses]):
            source = self._carrier(_Compared(part, read), part, today, names)
            if source.speaker is not Speaker.PERSON:
                return source
            found.append(source)
        carriers = found[1:] or found
        author = carriers[0].author or by
        together = Source(Speaker.MODEL, None)
        if any((each.author or by) != author for each in carriers):
            return together
        if author != by and _speaks_of(statement, names, [each.text or "" for each in carriers]):
            return together
        theirs = [text for text, source in self._said if (source.author or by) == author]
        if len(theirs) < len(self._said):
            called = names if author == by else ""
            if not is_grounded(statement, said=theirs, today=today, names=called):
                return together
        return replace(
            carriers[0], text=statement, is_plain=all(each.is_plain for each in found), author=author
        )

    @property
    def _said(self) -> list[tuple[str, Source]]:
        return [(each.text, each) for each in self.sources if each.speaker is Speaker.PERSON and each.text]

    def _carrier(self, compared: _Compared, statement: str, today: date | None, names: str) -> Source:
        """The source that carries one clause; of a person's the text is their sentence."""
        others = [each for each in self.sources if each.speaker is not Speaker.PERSON]
        unseen = [each for each in others if each.text is None]
        for each in unseen:
            if each.speaker is Speaker.WEB:  # any of it may be what strangers wrote
                return each
        said = [(text, source) for text, source in self._said if not says_nothing(text)]
        own = [
            (part, source)
            for text, source in said
            for sentence in _sentences(text)
            for part in _with_clauses(sentence)
        ]
        plain = [pair for pair in own if not pair[1].is_confirmed]
        plain_said = [text for text, source in self._said if not source.is_confirmed]
        is_said = is_grounded(statement, said=plain_said, today=today, names=names)
        if is_said:
            for part, source in plain:
                if not is_asked(part) and compared.words_in(part):
                    return replace(source, text=part, is_plain=True)
        support, carrier = compared.support_of(plain)
        texts = [part for part, _source in own]
        best, other = compared.best_of([each for each in others if each.speaker not in _SECOND_HAND], texts)
        taken = compared.taken_from(others, texts)
        if taken is not None:
            return taken
        if carrier and is_said and support >= (PLAIN if unseen else LEAST) and best <= support:
            return replace(carrier, is_plain=support >= PLAIN)
        # The words of a question that was answered with yes are the model's: it may have them from anywhere.
        support, carrier = compared.support_of(own)
        grounded = is_grounded(statement, said=self.said, today=today, names=names)
        if carrier and grounded and support >= LEAST and best < LEAST and not unseen:
            return replace(carrier, is_plain=False)
        if other is not None and best >= LEAST:
            return other
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

    def support_of(self, own: Sequence[tuple[str, Source]]) -> tuple[float, Source | None]:
        """Return the similarity of the nearest sentence of a person, and its source. A question counts ``ASKED`` times
        that.
        """
        own = self._likeliest(own, text_of=lambda pair: pair[0])
        texts = [text for text, _source in own]
        best: tuple[float, Source | None] = (0.0, None)
        for (text, source), cosine in zip(own, self.cosines(texts), strict=True):
            share = self._share(text)
            near = max(cosine, share if share >= OWN_WORDS and len(self._words) > 1 else 0.0)
            near *= ASKED if is_asked(text) else 1.0
            if near > best[0]:
                best = near, replace(source, text=text)
        return best

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

    def taken_from(self, others: Sequence[Source], own: Sequence[str]) -> Source | None:
        """The source whose sentence about somebody named here has a word that nobody here said: "the warehouse manager
        Otto Brandt wrote it" is of two.
        """
        foreign = self._words - words_of(" ".join(own)) - self._names
        for source in others if foreign and self._names else ():
            if source.text is None or source.is_bag or source.speaker in _SECOND_HAND:
                continue
            for piece in _pieces(source.text):
                words = words_of(piece)
                if foreign & words and self._names & words:
                    return source
        return None

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
        """Return the share of the words that nobody here used, if these are many, which the bag has."""
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
    """Return the text that a short "Yes, exactly" confirms: the statement in the question before it. The sentence
    before that counts only if the question merely asks whether it is true or to be remembered: nobody confirms what an
    offer follows.
    """
    if not agrees(message):
        return ""
    asked = list(_sentences(before))
    if not asked or not is_asked(asked[-1]):
        return ""
    if asks_back(asked[-1]):
        return "".join(sentence for sentence in asked[-2:-1] if not is_asked(sentence))
    return _QUESTION.sub(".", asked[-1])


def clauses_of(statement: str) -> list[str]:
    """Split a statement that makes several into its clauses. Short ones stay with the one before."""
    found: list[str] = []
    for sentence in _STOPS.split(statement):
        start = len(found)
        for part in _JOINS.split(sentence):
            before = found[start:][-1:]
            if before and min(len(words_of(each)) for each in (part, *before)) < LEAST_CLAUSE:
                found[-1] += f" {part}"
            elif part.strip():
                found.append(part.strip())
    return found if len(found) > 1 else []


def is_asked(sentence: str) -> bool:
    return bool(_QUESTION.search(sentence))


def words_to_keep(text: str) -> set[str]:
    """All that has to be kept of a long text to know later whether something is taken from it."""
    return {word[:_KEPT] for word in _WORD.findall(text.casefold())}


def words_of(text: str) -> set[str]:
    """Content words, cut to their beginnings, so that "deploys" and "deployed" are one."""
    return {word[:_STEM] for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _speaks_of(statement: str, names: str, carriers: Sequence[str]) -> bool:
    """Whether it speaks of the person who asks, though the sentences that carry it, another's, do not."""
    said = {word for text in carriers for word in _WORD.findall(text.casefold())}
    asker = _THE_USER | set(_WORD.findall(names.casefold()))
    spoken = {word for word in _WORD.findall(statement.casefold()) if word in asker}
    return bool(spoken - said or _JOINED_USER.search(statement))


def names_the_user(text: str) -> bool:
    """Whether it speaks of "the user", as extraction does."""
    return bool(_JOINED_USER.search(text) or _THE_USER.intersection(_WORD.findall(text.casefold())))


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
