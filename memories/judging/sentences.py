"""Splitting of a message into sentences and clauses, without code, logs and quoted lines.

Clauses are split at punctuation, at a few conjunctions, and by small networks, fitted by tests/bench/fit_keeping.py.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memories.judging.encoder_interface import Encoder, chances
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import places_of

# ruff: noqa: RUF001  marks and letters of other scripts are meant

MAX_READ = 12_000  # maximum characters of a message that are read
LONG = 2_000  # a longer message is mostly pasted text, after the user's own words
OWN_PART = 600

_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTES = '""', "\u201c\u201d", "\u00ab\u00bb", "\u201e\u201c", "\u300c\u300d", "\u300e\u300f"
_QUOTE = re.compile(
    "|".join(f"{opens}[^{closes}\n]{{0,600}}{closes}" for opens, closes in map(tuple, _QUOTES))
)
_NOT_PROSE = re.compile(
    r"\s*(?:>|\||[#$%]\s|>>>|//|\{|\d{2}:\d{2}|\[\w|\d{4}-\d\d-\d\d[ T]\d|\d+\.\d+\.\d+\.\d+|\w+@\w+:|"
    r"(?:Traceback|File \"|at \w+\.|import |from \w+ import|def |class |const |let |var |my \$|SELECT |INSERT |GET |"
    r"POST |curl |npm |pip |git |export )|"
    r"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\s+(?:\[|[\w-]+\.\w))|.*(?:[{};]\s*$|=>|\w\(\)|</?\w+>|::)"
)
_END = re.compile(r"[.!?…]+[\"')\]”»]*(?=\s|$)|[。！？]+[」』”]*|[;；]\s*|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Inc|Ltd|Co|Nr|bzw|z\.B|ca|Hr|Fr|Sra?|Dra?|Ud|Mme|av|"
    r"им|ул|г|т\.е|a\.m|p\.m|U\.S|U\.K)|\b[A-Z])\.$|\s\d{1,2}\.$"
)
_GOES_ON = re.compile(r"\s*(?:[a-zа-яà-ÿ,]|Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
_SHORT = 25  # maximum characters of a sentence that introduces the next one, such as "No, wait."
_FEW = 3  # words; a longer quotation is a sentence of somebody else, a shorter one a name


def sentences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is_quote) of each sentence, including its closing punctuation."""
    code = [match.span() for match in _CODE_BLOCK.finditer(text)]
    quoted = [match.span() for match in _QUOTE.finditer(text) if _is_long(match[0])]
    for start, end in _cut(text, quoted):
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start < end and not _meets(code, start, end) and not _NOT_PROSE.match(_line(text, start)):
            yield start, end, _meets(quoted, start, end)


def own_part(text: str) -> str:
    """Return a short message, or the beginning of a long one, because the rest is mostly pasted."""
    text = text[:MAX_READ].replace("\u2019", "'")
    if len(text) <= LONG:
        return text
    start = text[:OWN_PART]
    return start.rsplit("\n", 1)[0] if "\n" in start else start.rsplit(". ", 1)[0]


def sentence_with(statement: str, texts: Sequence[str]) -> str:
    """Return the sentence of ``texts`` most similar to the statement, with a very short one before it, or ""."""
    wanted, best, most = _threes(statement), "", 0
    for text in map(own_part, texts):
        short = ""
        for start, end, quotes in sentences(text):
            own = text[start:end]
            shared = 0 if quotes else len(_threes(own) & wanted)
            if shared > most:
                best, most = f"{short} {own}".strip(), shared
            short = own if len(own) <= _SHORT else ""
    return best


def _threes(text: str) -> set[str]:
    plain = text.casefold()
    return {plain[at : at + 3] for at in range(max(len(plain) - 2, 1))}


def _is_long(quote: str) -> bool:
    return len(quote.split()) > _FEW or (not quote.isascii() and len(quote) > 3 * _FEW)


def _cut(text: str, quoted: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(text):
        if any(a <= match.start() < b - 1 for a, b in quoted):
            continue
        short = _ABBREVIATION.search(text[max(start, match.end() - 8) : match.start() + 1])
        if match[0].startswith(".") and short and match.end() < len(text):
            is_day = short[0].strip()[0].isdigit()
            if not is_day or _GOES_ON.match(text[match.end() :]):
                continue
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _meets(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(a < end and b > start for a, b in spans)


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]


Span = tuple[int, int]
WINDOW = 700  # characters of a message encoded at once, at most 512 pieces in any script
# Characters of the beginning that are encoded again before every later part, as context: "Translate this: …".
LEAD = 160
LEAST = 0.3  # probability from which a clause may begin or end at a piece
LEAST_TOPIC = 0.5
MOST_BEGINS, MOST_ENDS, MOST_SPANS = 7, 8, 28  # per sentence
TAGS = ("begins", "ends", "topic")
# Conjunctions in many languages, before which clauses are split. Leading ones are trimmed.
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
class EncodedMessage:
    """An encoded message. ``places``: the span of each piece (token); ``vectors``: its state in the middle layer."""

    text: str
    places: list[Span]
    vectors: Vectors


def windows(text: str) -> list[tuple[str, int, int]]:
    """Return the parts in which a message is encoded, as (context put before the part, start, end)."""
    if len(text) <= WINDOW:
        return [("", 0, len(text))] if text.strip() else []
    bounds, start, last = [], 0, 0
    for end in [*(end for _start, end, _quotes in sentences(text)), len(text)]:
        if end - start > WINDOW and last > start:
            bounds.append((start, last))
            start = last
        while end - start > WINDOW:
            bounds.append((start, start + WINDOW))
            start += WINDOW
        last = end
    bounds.append((start, len(text)))
    lead = text[:LEAD].rsplit(" ", 1)[0] + " "
    return [(lead if start else "", start, end) for start, end in bounds if text[start:end].strip()]


def texts_read(text: str) -> list[str]:
    """Return the texts that ``read`` passes to the encoder for a message."""
    return [lead + text[start:end] for lead, start, end in windows(text)]


def read(text: str, encoder: Encoder) -> EncodedMessage:
    """Encode a message. Raises EmbedderError if the encoder fails."""
    places: list[Span] = []
    vectors = [np.zeros((0, 384), np.float32)]
    reads = encoder.states(texts_read(text))
    for (lead, start, end), states in zip(windows(text), reads, strict=True):
        shift = start - len(lead)
        placed = [(a + shift, b + shift) for a, b in places_of(lead + text[start:end], states.pieces)]
        own = [number for number, (a, _b) in enumerate(placed[: len(states.middle)]) if a >= start]
        places += [placed[number] for number in own]
        vectors.append(np.asarray(states.middle, np.float32)[own])
    return EncodedMessage(text, places, np.concatenate(vectors))


def beside(vectors: Vectors) -> Vectors:
    """Return a row for each piece: the vector of the piece before it, its own, and that of the piece after it."""
    edge = np.zeros((1, vectors.shape[1]), np.float32)
    padded = np.vstack([edge, vectors, edge])
    return np.hstack([padded[:-2], vectors, padded[2:]])


def tagged(scaled: Vectors, fitted: dict[str, Vectors]) -> dict[str, Vectors]:
    """Return for each piece the chances that a clause begins or ends with it, or that it is part of a later topic."""
    rows = beside(scaled)
    names = ("inner", "inner_bias", "outer", "outer_bias")
    return {tag: chances(rows, {name: fitted[f"{tag}_{name}"] for name in names}) for tag in TAGS}


def spans(
    passage: EncodedMessage, tags: dict[str, Vectors], start: int, end: int
) -> Iterator[tuple[Span, bool, bool]]:
    """Yield the most probable clauses of a sentence, each with whether it begins and ends where the sentence does."""
    text = passage.text
    begins, ends = {start: 1.0}, {end: 1.0}
    for match in _CUT.finditer(text[start:end]):
        if 2 < match.end() < end - start - 1:
            begins[start + match.end()] = ends[start + match.start()] = 1.0
    for (a, b), begin, stop in zip(passage.places, tags["begins"], tags["ends"], strict=True):
        if start < a < end and begin > LEAST and (JOINED.match(text[a]) or text[a - 1].isspace()):
            begins[a] = max(begins.get(a, 0.0), float(begin))
            ends.setdefault(a, 0.05)
        if start < b < end and stop > LEAST and (JOINED.match(text[b]) or not text[b].isalnum()):
            ends[b] = max(ends.get(b, 0.0), float(stop))
    scores: dict[Span, float] = {}
    for a in sorted(begins, key=lambda at: -begins[at])[:MOST_BEGINS]:
        for b in sorted(ends, key=lambda at: -ends[at])[:MOST_ENDS]:
            span = trim(text, a, b)
            if span[1] - span[0] >= 2:
                scores[span] = max(scores.get(span, 0.0), begins[a] * ends[b])
    whole = trim(text, start, end)
    for span in sorted(scores, key=lambda each: -scores[each])[:MOST_SPANS]:
        yield span, span[0] == whole[0], span[1] == whole[1]


def topic_before(passage: EncodedMessage, tags: dict[str, Vectors], at: int) -> Span | None:
    """Return the most probable topic before position ``at``: "my sister" in "… my sister. She is a nurse"."""
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
    """Return the span extended to whole words."""
    start, end = span
    while start > 0 and text[start - 1].isalnum() and not JOINED.match(text[start]):
        start -= 1
    while end < len(text) and text[end].isalnum() and not JOINED.match(text[end]):
        end += 1
    return trim(text, start, end)


def trim(text: str, start: int, end: int) -> Span:
    """Return the span without conjunctions at its start and punctuation at its end."""
    if match := _LEAD.match(text[start:end]):
        start += match.end()
    while end > start and text[end - 1] in _ENDS:
        end -= 1
    return start, end
