"""The source of a statement: a person's own words, or another text in the model's context.

Each sentence of the context is compared with the statement by the cosine of their vectors. The statement is a person's
own if three conditions hold: the nearest of their sentences is near enough, no other source is nearer, and their words
contain all its names and numbers. When in doubt the statement is sent to review, which costs a click; the opposite
mistake would let a document write into somebody's memory. Figures are in docs/figures.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

import numpy as np

from memories.judging.encoder_interface import Encoder, ReadOnce
from memories.judging.extraction import grounding
from memories.judging.sentences import MAX_READ, sentences
from memoryhub.llm.base import Speaker, Vectors
from memoryhub.llm.e5 import meaning_of

LEAST = 0.35  # minimum cosine at which a person's sentence supports a statement
PLAIN = 0.7  # the same if the context contained something that cannot be compared
ASKED = 0.8  # factor for the cosine of a person's question, because asking is not stating
OWN_WORDS = 0.6  # minimum share of a statement's words in a person's sentence at which it is theirs, without an encoder
TAKEN = 0.5  # minimum share of the remaining words in another source at which the statement is taken from it
LEAST_CLAUSE = 2  # minimum content words of a clause that is checked separately
MOST_SENTENCES = 80  # sentences encoded per side, 3 ms each: the newest, and those that share most words
LONGEST_PIECE = 400  # characters
MOST_OF_A_TEXT = 40_000  # maximum characters read of one source
T = TypeVar("T")
_STEM = 5
_KEPT = 12  # characters of a word that are stored for a later comparison, more than any stem has
_WORD = re.compile(r"[^\W_]+")
_PARTS = re.compile("(?<=[.!?…])\\s+|[\u3002\uff01\uff1f\n|;]+")
CLAUSES = re.compile(
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
# These sources repeat what they were given, including the person's words, so they are not compared.
_SECOND_HAND = frozenset({Speaker.MODEL, Speaker.SYSTEM})


@dataclass(frozen=True)
class Source:
    """A text that was in the model's context."""

    speaker: Speaker
    text: str | None  # None if it is deleted, changed or not visible to the user
    id: str = ""  # public id of the document, memory or other object that contains it
    is_bag: bool = False  # ``text`` is a set of words without order
    is_plain: bool = False  # a person made the statement in nearly the same words
    is_confirmed: bool = False  # a question of the assistant, to which the person said yes
    author: int = 0  # primary key; 0 is the user who sent the current message


@dataclass(frozen=True)
class Provenance:
    """The texts in the model's context with their speakers. People's messages are newest first."""

    sources: tuple[Source, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """Return people's own messages, and the questions of the assistant that they confirmed."""
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
        """Return the source of a statement.

        If the words of one person support every clause, the speaker is that person, and the statement may be stored
        without review. Otherwise it is somebody else, such as the model. ``today`` and ``names`` are as in
        ``is_grounded``; ``by`` is the primary key of the user who has these names. Encodes up to 160 sentences. Raises
        EmbedderError if the encoder fails.
        """
        read = ReadOnce(encoder) if encoder else None
        clauses = clauses_of(statement)
        sources: list[Source] = []
        for part in dict.fromkeys([statement, *clauses]):
            source = self._source_of_clause(_Compared(part, read), part, today, names)
            if source.speaker is not Speaker.PERSON:
                return source
            sources.append(source)
        carriers = sources[1:] or sources
        author = carriers[0].author or by
        together = Source(Speaker.MODEL, None)
        if any((each.author or by) != author for each in carriers):
            return together
        if author != by and _mentions_user(statement, names, [each.text or "" for each in carriers]):
            return together
        theirs = [text for text, source in self._said if (source.author or by) == author]
        if len(theirs) < len(self._said):
            called = names if author == by else ""
            if not grounding.is_grounded(statement, said=theirs, today=today, names=called):
                return together
        return replace(
            carriers[0], text=statement, is_plain=all(each.is_plain for each in sources), author=author
        )

    @property
    def _said(self) -> list[tuple[str, Source]]:
        return [(each.text, each) for each in self.sources if each.speaker is Speaker.PERSON and each.text]

    def _source_of_clause(
        self, compared: _Compared, statement: str, today: date | None, names: str
    ) -> Source:
        """Return the source that best supports one clause. If a person is the speaker, ``text`` is their sentence."""
        others = [each for each in self.sources if each.speaker is not Speaker.PERSON]
        unseen = [each for each in others if each.text is None]
        for each in unseen:
            if each.speaker is Speaker.WEB:  # any web text may be written by strangers
                return each
        messages = [(text, source) for text, source in self._said if not grounding.says_nothing(text)]
        own = [
            (part, source)
            for text, source in messages
            for sentence in _sentences(text)
            for part in _with_clauses(sentence)
        ]
        plain = [pair for pair in own if not pair[1].is_confirmed]
        plain_said = [text for text, source in self._said if not source.is_confirmed]
        is_said = grounding.is_grounded(statement, said=plain_said, today=today, names=names)
        if is_said:
            for part, source in plain:
                if not is_asked(part) and compared.words_in(part):
                    return replace(source, text=part, is_plain=True)
        support, carrier = compared.support_of(plain)
        texts = [part for part, _source in own]
        best, other = compared.best_of([each for each in others if each.speaker not in _SECOND_HAND], texts)
        origin = compared.taken_from(others, texts)
        if origin is not None:
            return origin
        if carrier and is_said and support >= (PLAIN if unseen else LEAST) and best <= support:
            return replace(carrier, is_plain=support >= PLAIN)
        # The words of a confirmed question are the model's, which may have them from any source.
        support, carrier = compared.support_of(own)
        grounded = grounding.is_grounded(statement, said=self.said, today=today, names=names)
        if carrier and grounded and support >= LEAST and best < LEAST and not unseen:
            return replace(carrier, is_plain=False)
        if other is not None and best >= LEAST:
            return other
        return unseen[0] if unseen else Source(Speaker.MODEL, None)


NOTHING = Provenance()


def nearest_of(statement: str, texts: Sequence[str], encoder: Encoder | None) -> tuple[int, float]:
    """Return the index of the text most similar to the statement, and its cosine. ``texts`` must not be empty."""
    cosines = _Compared(statement, encoder).cosines(texts)
    best = max(range(len(texts)), key=lambda at: cosines[at])
    return best, cosines[best]


class _Compared:
    """A statement that is compared with sentences by cosine or, without an encoder, by the share of common words."""

    def __init__(self, statement: str, encoder: Encoder | None) -> None:
        self._statement, self._encoder = statement, encoder
        self._words = words_of(statement)
        self._names = {name[:_STEM] for name in grounding.names_in(statement)}
        self._numbers = grounding.numbers_in(statement)

    def words_in(self, sentence: str) -> bool:
        """Return whether the sentence contains all content words of the statement, which must have at least two."""
        return len(self._words) > 1 and self._words <= words_of(sentence)

    def support_of(self, own: Sequence[tuple[str, Source]]) -> tuple[float, Source | None]:
        """Return the highest similarity of a person's sentence in ``own``, and its source."""
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
        """Return the highest similarity of a source that has all names and numbers of the statement, and that source.

        ``own``: people's sentences.
        """
        best: tuple[float, Source | None] = (0.0, None)
        pieces: list[tuple[str, Source]] = []
        for source in others:
            if source.text is None:
                continue
            if source.is_bag:
                best = max(best, (self._share_of_bag(source.text, own), source), key=lambda pair: pair[0])
                continue
            stems = {word[:_STEM] for word in _WORD.findall(source.text.casefold())}
            if not self._numbers - grounding.numbers_in(source.text) and not self._names - stems:
                pieces += [(piece, source) for piece in _pieces(source.text)]
        chosen = self._likeliest(pieces, text_of=lambda pair: pair[0])
        near = zip(self.cosines([piece for piece, _source in chosen]), chosen, strict=True)
        return max([best, *((cosine, source) for cosine, (_p, source) in near)], key=lambda pair: pair[0])

    def taken_from(self, others: Sequence[Source], own: Sequence[str]) -> Source | None:
        """Return the source that has a name and a word of the statement that no person used, or None."""
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
        """Return the share of the statement's words that people did not use (``own``) and that occur in ``bag``."""
        foreign = self._words - words_of(" ".join(own))
        if len(foreign) <= (1 - OWN_WORDS) * len(self._words):
            return 0.0
        share = len(foreign & words_of(bag)) / len(foreign)
        return share if share >= TAKEN else 0.0

    def _likeliest(self, all_of_them: Sequence[T], text_of: Callable[[T], str] = str) -> Sequence[T]:
        """Return at most ``MOST_SENTENCES`` entries: half are the newest, half share most words with the statement."""
        if len(all_of_them) <= MOST_SENTENCES:
            return all_of_them
        half = MOST_SENTENCES // 2
        rest = sorted(all_of_them[half:], key=lambda each: -len(self._words & words_of(text_of(each))))
        return [*all_of_them[:half], *rest[:half]]


def confirmed(message: str, before: str) -> str:
    """Return the statement at the end of ``before`` that a message such as "Yes, exactly" confirms, or ""."""
    if not grounding.agrees(message):
        return ""
    question_sentences = list(_sentences(before))
    if not question_sentences or not is_asked(question_sentences[-1]):
        return ""
    if grounding.asks_back(question_sentences[-1]):
        return "".join(sentence for sentence in question_sentences[-2:-1] if not is_asked(sentence))
    return _QUESTION.sub(".", question_sentences[-1])


def clauses_of(statement: str) -> list[str]:
    """Return the clauses of a statement, which have at least two content words each, or none if it has only one."""
    clauses: list[str] = []
    for sentence in _STOPS.split(statement):
        start = len(clauses)
        for part in _JOINS.split(sentence):
            before = clauses[start:][-1:]
            if before and min(len(words_of(each)) for each in (part, *before)) < LEAST_CLAUSE:
                clauses[-1] += f" {part}"
            elif part.strip():
                clauses.append(part.strip())
    return clauses if len(clauses) > 1 else []


def is_asked(sentence: str) -> bool:
    return bool(_QUESTION.search(sentence))


def words_to_keep(text: str) -> set[str]:
    """Return the words of a long text, cut to their first letters, to check later if a statement was taken from it."""
    return {word[:_KEPT] for word in _WORD.findall(text.casefold())}


def words_of(text: str) -> set[str]:
    """Return the content words, cut to five letters, so that "deploys" and "deployed" are equal."""
    return {word[:_STEM] for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _mentions_user(statement: str, names: str, carriers: Sequence[str]) -> bool:
    """Return whether the statement mentions the user although the ``carriers``, which another person wrote, do not."""
    carrier_words = {word for text in carriers for word in _WORD.findall(text.casefold())}
    asker = _THE_USER | set(_WORD.findall(names.casefold()))
    spoken = {word for word in _WORD.findall(statement.casefold()) if word in asker}
    return bool(spoken - carrier_words or _JOINED_USER.search(statement))


def names_the_user(text: str) -> bool:
    """Return whether the text mentions "the user", as extracted statements do."""
    return bool(_JOINED_USER.search(text) or _THE_USER.intersection(_WORD.findall(text.casefold())))


def _sentences(text: str) -> list[str]:
    """Return the sentences of a message, without code, logs and quoted lines."""
    text = text[:MAX_READ].replace("\u2019", "'")
    return [text[start:end] for start, end, _quotes in sentences(text)]


def _with_clauses(sentence: str) -> list[str]:
    """Return a sentence, followed by its clauses if it has several: "the deadline is March 15 and I am vegetarian"."""
    clauses = [part for part in CLAUSES.split(sentence) if len(part.split()) > 1]
    return [sentence, *clauses] if len(clauses) > 1 and not is_asked(sentence) else [sentence]


def _pieces(text: str) -> list[str]:
    """Return the lines and sentences of any text, also of code, in pieces of at most ``LONGEST_PIECE`` characters."""
    parts = [part for line in _PARTS.split(text[:MOST_OF_A_TEXT]) if (part := line.strip())]
    return [part[at : at + LONGEST_PIECE] for part in parts for at in range(0, len(part), LONGEST_PIECE)]


def _mean(states: Vectors) -> Vectors:
    mean: Vectors = states.astype(np.float32).mean(axis=0) if len(states) else np.zeros(384, np.float32)
    length: Vectors = mean / max(float(np.linalg.norm(mean)), 1e-6)
    return length
