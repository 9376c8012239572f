"""Which clauses of a message say something that lasts, by a small head over the encoder's states.

A clause is judged by its own vector, by those of how the message begins and of everything else in it (role play, a
text to translate, a question), and by a few marks of its place. The head was fitted by tests/bench/fit_keeping.py on
messages in nine languages; there is no list of words here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from memories.judging.encoder import Encoder, ReadOnce
from memories.judging.extraction.clauses import Span, clauses
from memories.judging.extraction.sentences import sentences
from memories.judging.nets import logits
from memoryhub.llm.base import Vectors

KINDS = ("fact", "preference", "instruction", "decision", "event")
MOST_CLAUSES = 160  # of a message are read
BESIDE = 0.25  # less than otherwise is asked of a clause whose sentence has another that is kept
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
    start: int
    end: int
    sentence: Span
    chance: float
    kind: str
    takes_back: float  # the chance that its sentence takes back what was said before


def clauses_of(text: str) -> list[Clause]:
    found: list[Clause] = []
    standing = list(sentences(text))
    asks = any(mark in text for mark in _ASKS)
    for number, (start, end, quotes) in enumerate(standing):
        for (a, b), (first, last) in clauses(text, start, end).items():
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
                b - a >= len(text.strip()) - 2,
                after != "" and after in "!\uff01",
            )
            found.append(Clause(a, b, (start, end), tuple(map(float, marks))))
    return found[:MOST_CLAUSES]


def measure(text: str, found: Sequence[Clause], encoder: Encoder) -> tuple[Vectors, Vectors, Vectors]:
    """Of each clause its own vector, those of what is beside it, and its marks. Raises EmbedderError.

    Beside it: the rest of the message, then how the message begins, where that is before the clause.
    """
    pieces = _pieces(text, found)
    reads = encoder.states([text[a:b] for a, b in pieces])
    sums = {
        span: (read.vectors.sum(axis=0), len(read.vectors)) for span, read in zip(pieces, reads, strict=True)
    }
    own = np.stack([sums[each.start, each.end][0] / max(sums[each.start, each.end][1], 1) for each in found])
    smallest = [span for span in pieces if not any(_holds(span, other) for other in pieces if other != span)]
    beside = []
    for each in found:
        others = [span for span in smallest if not _meets(span, each)]
        first = min(others, default=(each.start, each.end))
        begins = [sums[first]] if first[1] <= each.start else []
        beside.append(np.concatenate([_mean([sums[span] for span in others]), _mean(begins)]))
    return own, np.stack(beside), np.array([each.marks for each in found], dtype=np.float32)


def _pieces(text: str, found: Sequence[Clause]) -> list[Span]:
    """The clauses, and what lies between the sentences: it is context too, though nothing is taken of it. None where
    there is no clause.
    """
    if not found:
        return []
    spans = list(dict.fromkeys((each.start, each.end) for each in found))
    at = 0
    for start, end in [*dict.fromkeys(each.sentence for each in found), (len(text), len(text))]:
        if text[at:start].strip():
            spans.append((at, start))
        at = max(at, end)
    return spans


def _holds(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _meets(span: Span, clause: Clause) -> bool:
    return span[0] < clause.end and clause.start < span[1]


def _mean(sums: Sequence[tuple[Vectors, int]]) -> Vectors:
    total = sum(count for _, count in sums)
    return np.sum([each for each, _ in sums], axis=0) / total if total else np.zeros(384, np.float32)


def texts_read(text: str) -> list[str]:
    """Return what ``judge`` has the encoder read of a message: a clause that stands in a longer one is read twice."""
    return [text[a:b] for a, b in _pieces(text, clauses_of(text))]


def prepared(own: Vectors, beside: Vectors, marks: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """What the head is given: the vectors without what all texts have in common, in one scale; 0 where nothing is."""
    vectors = np.hstack([own, beside]).reshape(len(own), -1, own.shape[1])
    is_there = vectors.any(axis=2, keepdims=True)
    scaled = np.where(is_there, (vectors - fitted["centre"]) / fitted["spread"], 0.0)
    return np.hstack([scaled.reshape(len(own), -1), marks]).astype(np.float32)


def judge(texts: Sequence[str], read: ReadOnce) -> list[list[Judged]]:
    """Return every clause of each message with the chance that it is to be kept. The encoder is called once, and takes
    some 10 milliseconds a sentence.
    """
    found = [clauses_of(text) for text in texts]
    read.states([text[a:b] for text, own in zip(texts, found, strict=True) for a, b in _pieces(text, own)])
    fitted = head()
    given = [
        prepared(*measure(text, own, read), fitted) for text, own in zip(texts, found, strict=True) if own
    ]
    judged = iter(_judged([each for own in found for each in own], given, fitted))
    return [list(islice(judged, len(own))) for own in found]


def _judged(clauses: list[Clause], given: list[Vectors], fitted: dict[str, Vectors]) -> Iterator[Judged]:
    """Ask the nets once for all clauses: a call costs as much as a hundred of them."""
    if not clauses:
        return
    rows = np.concatenate(given)
    width = len(fitted["centre"])
    chances = (1 / (1 + np.exp(-logits(rows, fitted)))).mean(axis=0)
    kinds = (rows[:, :width] @ fitted["kinds"] + fitted["kinds_bias"]).argmax(axis=1)
    back = 1 / (1 + np.exp(-(rows[:, :width] @ fitted["back"] + fitted["back_bias"])))
    for each, chance, kind, taken in zip(clauses, chances, kinds, back, strict=True):
        yield Judged(each.start, each.end, each.sentence, float(chance), KINDS[kind], float(taken))


def chosen(judged: Sequence[Judged], least: float, *, beside: float = BESIDE) -> list[Judged]:
    """Of clauses that overlap those that together are the surest: two facts joined by "and" are two."""
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
