"""Where the clauses of a message may begin and end, and what they are about.

They are cut at marks, at a few words that join, and where small nets over the encoder's states say so: "en" joins in
Dutch and means "in" in Spanish. The nets were fitted by tests/bench/fit_keeping.py.
"""

# ruff: noqa: RUF001  marks and letters of other scripts are meant
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memories.judging.encoder import Encoder
from memories.judging.extraction.sentences import sentences
from memories.judging.nets import logits
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import places_of

Span = tuple[int, int]
WINDOW = 700  # characters of a message that are read at once: at most 512 pieces in any script
LEAD = 160  # characters of its beginning that are read before every later part: "Translate this: …"
LEAST = 0.3  # chance from which a clause may begin or end at a piece
LEAST_TOPIC = 0.5
MOST_BEGINS, MOST_ENDS, MOST_SPANS = 7, 8, 28  # of a sentence
TAGS = ("begins", "ends", "topic")
# Words of many languages that join clauses: a place to cut, and nothing to begin a statement with.
_JOINS = (
    "and but so that because since while which|und aber dass weil denn|y pero que porque|et mais|e mas"
    "|maar dat omdat|che perché|ale że|и а но что потому|और लेकिन|và nhưng"
).replace(" ", "|")
_CUT = re.compile(
    r"[,;:–—]\s+|\s[-–—]+\s|[，、；：]|(?<=[\u3040-\u30ff\u3400-\u9fff])[,;:]"
    rf"|\s+(?=(?:{_JOINS})\s)",
    re.IGNORECASE,
)
_LEAD = re.compile(rf"(?:(?:{_JOINS})\s+|[\s,;:–—-]+|而且|而|但是|但|所以)+", re.IGNORECASE)
JOINED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts that write words without spaces
_ENDS = " ,;:.!。！，；：…–—-\n、"


@dataclass(frozen=True)
class Passage:
    """A message as the encoder read it: where each piece stands, and its state."""

    text: str
    places: list[Span]
    vectors: Vectors


def windows(text: str) -> list[tuple[str, int, int]]:
    """The parts in which a message is read: what is read before each, and where it begins and ends."""
    if len(text) <= WINDOW:
        return [("", 0, len(text))]
    found, start, last = [], 0, 0
    for end in [*(end for _start, end, _quotes in sentences(text)), len(text)]:
        if end - start > WINDOW and last > start:
            found.append((start, last))
            start = last
        while end - start > WINDOW:
            found.append((start, start + WINDOW))
            start += WINDOW
        last = end
    found.append((start, len(text)))
    lead = text[:LEAD].rsplit(" ", 1)[0] + " "
    return [(lead if start else "", start, end) for start, end in found if text[start:end].strip()]


def texts_read(text: str) -> list[str]:
    """Return what ``read`` has the encoder read of a message."""
    return [lead + text[start:end] for lead, start, end in windows(text) if text[start:end].strip()]


def read(text: str, encoder: Encoder) -> Passage:
    """Raises EmbedderError."""
    places: list[Span] = []
    vectors = [np.zeros((0, 384), np.float32)]
    parts = [part for part in windows(text) if text[part[1] : part[2]].strip()]
    reads = encoder.states([lead + text[start:end] for lead, start, end in parts])
    for (lead, start, end), states in zip(parts, reads, strict=True):
        shift = start - len(lead)
        placed = [(a + shift, b + shift) for a, b in places_of(lead + text[start:end], states.pieces)]
        own = [number for number, (a, _b) in enumerate(placed[: len(states.vectors)]) if a >= start]
        places += [placed[number] for number in own]
        vectors.append(np.asarray(states.vectors, np.float32)[own])
    return Passage(text, places, np.concatenate(vectors))


def beside(vectors: Vectors) -> Vectors:
    """Each piece between its neighbours."""
    edge = np.zeros((1, vectors.shape[1]), np.float32)
    padded = np.vstack([edge, vectors, edge])
    return np.hstack([padded[:-2], vectors, padded[2:]])


def tagged(scaled: Vectors, fitted: dict[str, Vectors]) -> dict[str, Vectors]:
    """The chance of each piece that a clause begins or ends with it, and that it is of what others are about."""
    rows = beside(scaled)
    names = ("inner", "inner_bias", "outer", "outer_bias")
    nets = {tag: {name: fitted[f"{tag}_{name}"] for name in names} for tag in TAGS}
    return {tag: (1 / (1 + np.exp(-logits(rows, net)))).mean(axis=0) for tag, net in nets.items()}


def spans(
    passage: Passage, tags: dict[str, Vectors], start: int, end: int
) -> Iterator[tuple[Span, bool, bool]]:
    """Yield the clauses that the sentence may have, and whether each begins and ends with it; the likeliest 28."""
    text = passage.text
    begins, ends = {start: 1.0}, {end: 1.0}
    for match in _CUT.finditer(text[start:end]):
        if 2 < match.end() < end - start - 1:
            begins[start + match.end()] = ends[start + match.start()] = 1.0
    chances = zip(passage.places, tags["begins"], tags["ends"], strict=True)
    for (a, b), begin, stop in chances:
        if start < a < end and begin > LEAST and (JOINED.match(text[a]) or text[a - 1].isspace()):
            begins[a] = max(begins.get(a, 0.0), float(begin))
            ends.setdefault(a, 0.05)
        if start < b < end and stop > LEAST and (JOINED.match(text[b]) or not text[b].isalnum()):
            ends[b] = max(ends.get(b, 0.0), float(stop))
    found: dict[Span, float] = {}
    for a in sorted(begins, key=lambda at: -begins[at])[:MOST_BEGINS]:
        for b in sorted(ends, key=lambda at: -ends[at])[:MOST_ENDS]:
            span = trim(text, a, b)
            if span[1] - span[0] >= 2:
                found[span] = max(found.get(span, 0.0), begins[a] * ends[b])
    whole = trim(text, start, end)
    for span in sorted(found, key=lambda each: -found[each])[:MOST_SPANS]:
        yield span, span[0] == whole[0], span[1] == whole[1]


def topic_before(passage: Passage, tags: dict[str, Vectors], at: int) -> Span | None:
    """The words before ``at`` that a clause is likeliest about: "my sister" of "… my sister. She is a nurse"."""
    runs: list[tuple[Span, float]] = []
    for (a, b), chance in zip(passage.places, tags["topic"], strict=True):
        if b > at or chance < LEAST_TOPIC:
            continue
        if runs and not passage.text[runs[-1][0][1] : a].strip():
            (begin, _end), total = runs.pop()
            runs.append(((begin, b), total + float(chance)))
        else:
            runs.append(((a, b), float(chance)))
    best = max(runs, key=lambda run: run[1], default=None)
    span = _whole_words(passage.text, best[0]) if best else (0, 0)
    return span if span[0] < span[1] else None


def _whole_words(text: str, span: Span) -> Span:
    """With the rest of the words that it begins and ends in."""
    start, end = span
    while start > 0 and text[start - 1].isalnum() and not JOINED.match(text[start]):
        start -= 1
    while end < len(text) and text[end].isalnum() and not JOINED.match(text[end]):
        end += 1
    return trim(text, start, end)


def trim(text: str, start: int, end: int) -> Span:
    """Without the words and marks that join it to its neighbors."""
    if match := _LEAD.match(text[start:end]):
        start += match.end()
    while end > start and text[end - 1] in _ENDS:
        end -= 1
    return start, end
