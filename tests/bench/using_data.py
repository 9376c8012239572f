# ruff: noqa: RUF001 signs of other scripts are the matter
"""What the decision of use is fitted and measured on, and which of it is which half.

Of PrefEval's file the fitted half is every second person with every second of its topics, the half left out the other
persons with the other topics; of LoCoMo's the first three conversations, and the others. Of the texts in this folder
and in `data/use` (a line each, its language first, statement and question divided by a bar) it goes by the question:
by a hash, or by turns. `talk_more.txt` is fitted on whole. `talk_held.txt`, `talk_held2.txt`, which was written before
that, and everything in languages of which nothing is fitted on are left out whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memories.recalling.evaluation import Conversation
from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import TwoEncoders
from tests.bench.judging_data import bucket
from tests.bench.small_talk import SMALL_TALK
from tests.bench.small_talk_abroad import ADVICE_ABROAD, FACTS_ABROAD, SMALL_TALK_ABROAD

DATA = Path(__file__).with_name("data") / "use"
SIZES = (5, 25, 100, None)  # memories in a workspace; None: all
LOOKED_AT = 10  # of what is recalled: as many as a turn asks for
# One matter each in seven languages: a question in one finds the statement in another.
FLYING = (
    ("I am afraid of flying.", "How do I best get to Vienna?"),
    ("Ich habe Flugangst.", "Wie komme ich am besten nach Wien?"),
    ("Me da miedo volar.", "¿Cómo llego mejor a Viena?"),
    ("J'ai peur de l'avion.", "Quel est le meilleur moyen d'aller à Vienne ?"),
    ("Ho paura di volare.", "Come arrivo al meglio a Vienna?"),
    ("Я боюсь летать.", "Как лучше добраться до Вены?"),
    ("我害怕坐飞机。", "去维也纳怎么走最好？"),
)
RENT = (
    ("The rent is 900 euros.", "How much rent do I pay?"),
    ("Die Miete beträgt 900 Euro.", "Wie viel Miete zahle ich?"),
    ("El alquiler es de 900 euros.", "¿Cuánto pago de alquiler?"),
    ("Le loyer est de 900 euros.", "Combien est-ce que je paie de loyer ?"),
    ("L'affitto è di 900 euro.", "Quanto pago di affitto?"),
    ("Аренда стоит 900 евро.", "Сколько я плачу за аренду?"),
    ("房租是九百欧元。", "我付多少房租？"),
)
FITTED_IN = {"en", "de", "es", "fr", "it", "ru", "zh"}
PARTS = 4  # random parts of workspaces that each message of small talk is said in, of each size


class Texts(NamedTuple):
    """``pairs``: (statement, question) of advice and of facts. ``lacking``: questions about what nobody said."""

    talk: dict[str, list[str]]
    pairs: dict[str, list[tuple[str, str]]]
    lacking: list[str]


class Asked(NamedTuple):
    """``size`` 0: the whole workspace. ``found``: the vectors of what is nearest."""

    kind: str
    size: int
    vector: Vectors
    found: Vectors
    wanted: Any  # (found,) bool


def texts_of(half: int) -> Texts:
    """Of the fitted half (0) or of the one left out (1)."""
    talk = {"talk, the 70": list(SMALL_TALK[half::2]), "talk abroad": list(SMALL_TALK_ABROAD[half::2])}
    for language, text in _lines("talk"):
        if _half(language, text) == half:
            kind = "talk, more" if language in FITTED_IN else "talk, other languages"
            talk.setdefault(kind + " English" if language == "en" else kind, []).append(text)
    if half:
        talk["talk, 100 held back"] = [text for _, text in _lines("talk_held")]
        talk["talk, 100 held back last"] = [text for _, text in _lines("talk_held2")]
    else:
        more = [*_lines("talk_more")]
        talk["talk, late English"] = [text for language, text in more if language == "en"]
        talk["talk, late abroad"] = [text for language, text in more if language != "en"]
    pairs = {"advice abroad": list(ADVICE_ABROAD[half::2]), "facts abroad": list(FACTS_ABROAD[half::2])}
    for kind in ("advice", "facts"):
        for language, line in _lines(kind):
            said, asked = line.split("|")
            if _half(language, asked) == half:
                place = (
                    "own" if language == "en" else "abroad" if language in FITTED_IN else "other languages"
                )
                pairs.setdefault(f"{kind} {place}", []).append((said, asked))
    return Texts(talk, pairs, [text for language, text in _lines("lacking") if _half(language, text) == half])


def topics(conversations: Sequence[Conversation]) -> list[str]:
    return sorted({query["relevant"][0] for each in conversations for query in each.queries})


def conversations_of(
    half: int, advice: Sequence[Conversation], facts: Sequence[Conversation]
) -> list[tuple[str, Conversation]]:
    kept = set(topics(advice)[half::2])
    of_half = [
        (
            "advice",
            Conversation(each.name, each.memories, [q for q in each.queries if q["relevant"][0] in kept]),
        )
        for each in advice[half::2]
    ]
    return of_half + [("facts", each) for each in (facts[3:] if half else facts[:3])]


class Half:
    """Every question of one half, in workspaces of all sizes. ``asked`` costs a minute."""

    def __init__(
        self, embedder: TwoEncoders, half: int, conversations: list[tuple[str, Conversation]]
    ) -> None:
        self.embedder, self.half = embedder, half
        self.texts, self.conversations = texts_of(half), conversations
        self.chance = random.Random(half)
        self.stored = [
            (kind, embedder.embed([memory["text"] for memory in each.memories]))
            for kind, each in conversations
        ]

    def asked(self) -> Iterator[Asked]:
        for (kind, conversation), (_, stored) in zip(self.conversations, self.stored, strict=True):
            yield from self._of_conversation(kind, conversation, stored)
        for kind, pairs in self.texts.pairs.items():
            said = self.embedder.embed([statement for statement, _ in pairs])
            asked = self.embedder.embed_queries([question for _, question in pairs])
            for statement, vector in zip(said, asked, strict=True):
                for size in SIZES[:-1]:
                    yield _find(
                        kind, size, vector, np.concatenate([statement[None], self._part(size - 1)]), {0}
                    )
        yield from self._across()
        for kind, texts in {**self.texts.talk, "personal lacking": self.texts.lacking}.items():
            for vector in self.embedder.embed_queries(texts):
                for size in SIZES * PARTS:
                    yield _find(kind, size, vector, self._part(size), set())

    def _across(self) -> Iterator[Asked]:
        """A statement in one language and a question in another, of one of the matters that stand in several."""
        for kind, matters in (("advice across", FLYING), ("facts across", RENT)):
            said = self.embedder.embed([statement for statement, _ in matters])
            asked = self.embedder.embed_queries([question for _, question in matters])
            for at in range(self.half, len(matters), 2):
                for place in range(len(matters)):
                    for size in SIZES[:-1]:
                        stored = np.concatenate([said[place][None], self._part(size - 1)])
                        yield _find(kind, size, asked[at], stored, {0})

    def _of_conversation(self, kind: str, conversation: Conversation, stored: Vectors) -> Iterator[Asked]:
        """Each question where its evidence is, and where it is not."""
        places = {memory["id"]: at for at, memory in enumerate(conversation.memories)}
        vectors = self.embedder.embed_queries([query["text"] for query in conversation.queries])
        for vector, query in zip(vectors, conversation.queries, strict=True):
            evidence = [places[known_as] for known_as in query["relevant"]]
            others = [at for at in range(len(stored)) if at not in evidence]
            for size in SIZES:
                most = min(size or len(stored), len(others))
                if size is None or size <= len(stored):
                    part = evidence + self.chance.sample(others, max(0, most - len(evidence)))
                    yield _find(kind, size, vector, stored[part], set(range(len(evidence))))
                    part = self.chance.sample(others, most)
                    yield _find(f"{kind} lacking", size, vector, stored[part], set())

    def _part(self, size: int | None) -> Vectors:
        _, stored = self.chance.choice(self.stored)
        return stored[self.chance.sample(range(len(stored)), min(size or len(stored), len(stored)))]


def _find(kind: str, size: int | None, vector: Vectors, stored: Vectors, wanted: set[int]) -> Asked:
    first = np.argsort(-(stored @ vector))[:LOOKED_AT]
    return Asked(kind, size or 0, vector, stored[first], np.array([int(at) in wanted for at in first]))


def _lines(name: str) -> Iterator[tuple[str, str]]:
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        language, text = line.split("|", 1)
        yield language, text


def _half(language: str, text: str) -> int:
    return bucket(text) % 2 if language in FITTED_IN else 1
