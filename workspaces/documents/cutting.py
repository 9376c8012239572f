"""A document's text in passages: pieces of a few sentences that keep to headings, pages and paragraphs.

Small ones, found by what stands around them: measured by ``manage.py bench_documents`` (docs/figures.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SIZE = 500  # characters of a passage, at most
AROUND = 250  # characters before and after that a passage is found by as well
# The end of a sentence, a line, and a line of a text that was quoted as code or JSON.
_ENDS = re.compile(r"(?<=[.!?])[\"'”’»)\]]*\s+|[。！？]+|\n+|(?:\\n)+")  # noqa: RUF001  signs that end sentences
_BREAKS = re.compile(r"\n\s*\n\s*")


@dataclass(frozen=True)
class Block:
    """Text under one heading and on one page."""

    text: str
    page: int = 0
    heading: str = ""


@dataclass(frozen=True)
class Passage:
    number: int
    page: int
    heading: str
    begins: int
    text: str
    around: str


def passages_of(blocks: Iterable[Block]) -> list[Passage]:
    """All of them one after the other are the blocks' texts, a line apart."""
    pieces: list[tuple[Block, str]] = []
    for block in blocks:
        text = block.text.rstrip() + "\n"
        pieces += [(block, piece) for piece in _pieces(text)]
    found, begins = [], 0
    for number, (block, text) in enumerate(pieces):
        before = pieces[number - 1][1][-AROUND:] if number else ""
        after = pieces[number + 1][1][:AROUND] if number + 1 < len(pieces) else ""
        around = "\n".join(filter(None, (block.heading, before + text + after)))
        found.append(Passage(number, block.page, block.heading, begins, text, around))
        begins += len(text)
    return found


def _pieces(text: str) -> Iterator[str]:
    """Join sentences up to SIZE; begin a new piece with a paragraph if the piece before is half full."""
    begins = end = 0
    for low, high in _sentences(text):
        while high - low > SIZE:  # no sentence: a table, code, a language without these signs
            if end > begins:
                yield text[begins:end]
            cut = text.rfind(" ", low + SIZE // 2, low + SIZE) + 1 or low + SIZE
            yield text[low:cut]
            begins = end = low = cut
        new_paragraph = end > begins and bool(_BREAKS.search(text, max(begins, end - 3), end))
        if high - begins > SIZE or (new_paragraph and end - begins > SIZE // 2):
            if end > begins:
                yield text[begins:end]
            begins = low
        end = high
    if end > begins:
        yield text[begins:end]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    low = 0
    for match in _ENDS.finditer(text):
        yield low, match.end()
        low = match.end()
    if low < len(text):
        yield low, len(text)
