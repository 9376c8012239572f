"""Small networks that decide which clauses of a message, and which short replies, state something worth remembering.

Each clause is judged in the context of the whole message, such as role play, a text to translate, or "I never said
that". A short reply is judged together with the question before it. The networks were fitted by
tests/bench/fit_keeping.py on messages in eleven languages, and use no word lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from memories.judging.encoder import Encoder, ReadOnce, logits
from memories.judging.sentences import (
    Passage,
    Span,
    read,
    sentences,
    spans,
    tagged,
    texts_read,
    topic_before,
)
from memoryhub.llm.base import Vectors

KINDS = ("fact", "preference", "instruction", "decision", "event")
NETS = ("inner", "inner_bias", "outer", "outer_bias")
MOST_CLAUSES = 160  # clauses judged per message
BESIDE = 0.17  # how much the threshold is lowered for a clause if another one of its sentence is kept
LACKING = 0.35  # probability from which a clause counts as not naming its topic
ALONE = slice(6 * 384, 7 * 384)  # the part of a row that is the mean state of the clause encoded alone
_ASKS = ("?", "\uff1f")
_COLON = re.compile("[:\uff1a]")


@dataclass(frozen=True)
class Clause:
    start: int
    end: int
    sentence: Span
    marks: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """A clause with its probability of being worth remembering.

    ``topic``: the position of the topic before the clause, if the clause does not name its topic. ``lacks_topic``:
    neither the clause nor the text before it names a topic.
    """

    start: int
    end: int
    sentence: Span
    chance: float
    kind: str
    takes_back: float  # the probability that its sentence takes back an earlier one
    topic: Span | None = None
    lacks_topic: bool = False


def clauses_of(passage: Passage, tags: dict[str, Vectors]) -> list[Clause]:
    text, found = passage.text, []
    standing = list(sentences(text))
    asks = any(mark in text for mark in _ASKS)
    for number, (start, end, quotes) in enumerate(standing):
        for (a, b), first, last in spans(passage, tags, start, end):
            after = text[b : b + 2].strip()[:1]
            marks = (
                quotes,
                after in _ASKS and after != "",
                text[end - 1] in _ASKS,
                number == 0,
                len(standing) == 1,
                any(map(str.isdigit, text[a:b])),
                min(b - a, 200) / 100,
                first,
                last,
                asks,
                after != "" and after in ":\uff1a",
                bool(_COLON.search(text[:a])),
                bool(_COLON.search(text[a:b])),
                b - a >= len(text.strip()) - 2,
                after != "" and after in "!\uff01",
            )
            found.append(Clause(a, b, (start, end), tuple(map(float, marks))))
    return found[:MOST_CLAUSES]


def scaled(vectors: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """Return the vectors centred on the mean of all texts and scaled."""
    return ((vectors - fitted["centre"]) / fitted["spread"]).astype(np.float32)


def measure(
    passage: Passage, own: Vectors, found: Sequence[Clause], encoder: Encoder, fitted: dict[str, Vectors]
) -> Vectors:
    """Return a row of measures for each clause.

    A row contains the mean of the clause's states in context; its first and last state, and those before and after it;
    the mean of all others; the mean of its states when encoded alone; and its marks.
    """
    alone = encoder.states([passage.text[each.start : each.end] for each in found])
    edge = np.zeros((1, own.shape[1]), np.float32)
    padded = np.vstack([edge, own, edge])
    sums = np.vstack([edge, np.cumsum(own, axis=0)])
    middles = np.array([(a + b) / 2 for a, b in passage.places])
    rows = []
    for each, states in zip(found, alone, strict=True):
        first = int(np.searchsorted(middles, each.start))
        after = max(int(np.searchsorted(middles, each.end)), min(first + 1, len(own)))
        inside = sums[after] - sums[first]
        rest = (sums[-1] - inside) / max(len(own) - (after - first), 1)
        edges = (padded[first + 1], padded[after], padded[first], padded[after + 1])
        by_itself = scaled(np.asarray(states.vectors, np.float32), fitted)
        mean = by_itself.mean(axis=0) if len(by_itself) else edge[0]
        rows.append(np.concatenate([inside / max(after - first, 1), *edges, rest, mean, each.marks]))
    return np.array(rows, np.float32)


def judge(texts: Sequence[str], encoder: ReadOnce) -> list[list[Judged]]:
    """Return every clause of each message with its probability of being worth remembering.

    Calls the encoder twice, which takes about 10 milliseconds per sentence.
    """
    encoder.states([part for text in texts for part in texts_read(text)])
    cut = [_Cut(read(text, encoder)) for text in texts]
    encoder.states([each.passage.text[a.start : a.end] for each in cut for a in each.found])
    return [each.judged(encoder) for each in cut]


class _Cut:
    """An encoded message with its possible clauses."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.own = scaled(passage.vectors, head())
        self.tags = tagged(self.own, head())
        self.found = clauses_of(passage, self.tags)

    def judged(self, encoder: Encoder) -> list[Judged]:
        if not self.found:
            return []
        fitted = head()
        rows = measure(self.passage, self.own, self.found, encoder, fitted)
        alone = rows[:, ALONE]
        chances = _chances(rows, {name: fitted[name] for name in NETS})
        lacking = _chances(rows, {name: fitted[f"lacks_{name}"] for name in NETS})
        kinds = (alone @ fitted["kinds"] + fitted["kinds_bias"]).argmax(axis=1)
        back = 1 / (1 + np.exp(-(alone @ fitted["back"] + fitted["back_bias"])))
        judged = []
        for each, chance, lacks, kind, taken in zip(self.found, chances, lacking, kinds, back, strict=True):
            needs = bool(lacks >= LACKING)
            topic = topic_before(self.passage, self.tags, each.start) if needs else None
            judged.append(
                Judged(
                    each.start, each.end, each.sentence, float(chance), KINDS[kind], float(taken),
                    topic, lacks_topic=needs and topic is None,
                )
            )  # fmt: skip
        return judged


def _chances(rows: Vectors, nets: dict[str, Vectors]) -> Vectors:
    chances: Vectors = (1 / (1 + np.exp(-logits(rows, nets)))).mean(axis=0)
    return chances


def chosen(judged: Sequence[Judged], least: float, *, beside: float = BESIDE) -> list[Judged]:
    """Choose the non-overlapping clauses that together are the most certain, so that two facts joined by "and" stay
    two.
    """
    sure = {each.sentence for each in judged if each.chance >= least}
    least -= beside
    likely = sorted(
        (each for each in judged if each.chance >= least and each.sentence in sure), key=lambda each: each.end
    )
    best: list[tuple[float, list[Judged]]] = [(0.0, [])]
    for number, each in enumerate(likely):
        before = max(at for at in range(number + 1) if at == 0 or likely[at - 1].end <= each.start)
        value, taken = best[before]
        gain = value + each.chance - least + 0.05
        best.append(max(best[-1], (gain, [*taken, each]), key=lambda pair: pair[0]))
    return best[-1][1]


@cache
def head() -> dict[str, Vectors]:
    with np.load(Path(__file__).with_name("head.npz")) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


LEAST = 0.6
LONGEST = 120  # maximum characters of a question and of a reply
_ASKS_FOR_REPLY = ("?", "\uff1f", "\u061f")


def question_of(before: str) -> str:
    """Return the question at the end of the assistant's message, or "" if the message does not end with one."""
    asked = list(sentences(before))
    if not asked:
        return ""
    start, end, quotes = asked[-1]
    question = before[start:end].strip()
    is_last = not before[end:].strip() and not quotes
    return question if is_last and question.endswith(_ASKS_FOR_REPLY) and len(question) <= LONGEST else ""


def states_fact(question: str, answer: str, encoder: Encoder) -> float:
    """Return the probability that a question and its reply together state something worth remembering.

    Encodes one text, some milliseconds. Raises EmbedderError if the encoder fails.
    """
    fitted = head()
    row = measure_reply(question, answer, encoder, fitted)
    nets = {name: fitted[f"reply_{name}"] for name in NETS}
    return float((1 / (1 + np.exp(-logits(row[None], nets)))).mean())


def statement(question: str, answer: str) -> str:
    return f"{question} {answer}"


def measure_reply(question: str, answer: str, encoder: Encoder, fitted: dict[str, Vectors]) -> Vectors:
    """Return the mean states of the question and the reply, encoded together, and the reply's first and last state."""
    passage = read(statement(question, answer), encoder)
    own = scaled(passage.vectors, fitted)
    asked = sum(a < len(question) for a, _b in passage.places)
    said = own[asked:] if asked < len(own) else own[-1:]
    row: Vectors = np.concatenate([own[:asked].mean(axis=0), said.mean(axis=0), said[0], said[-1]])
    return row
