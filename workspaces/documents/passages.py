"""Splitting the text of a document into passages.

A passage is a few sentences under one heading. It is embedded with the text around it; the sizes were measured by
``tests/bench/bench_documents.py`` (docs/figures.md).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from workspaces.documents.reading.kinds import Block

SIZE = 500  # characters of a passage, at most
CONTEXT = 250  # characters before and after a passage that are embedded with it
# The end of a sentence or of a line, including the escaped line feeds of quoted code or JSON.
_ENDS = re.compile(r"(?<=[.!?])[\"'”’»)\]]*\s+|[。！？]+|\n+|(?:\\n)+")  # noqa: RUF001  signs that end sentences
_BREAKS = re.compile(r"\n\s*\n\s*")


@dataclass(frozen=True)
class Passage:
    number: int
    page: int
    heading: str
    begins: int
    text: str
    around: str


def passages_of(blocks: Iterable[Block]) -> list[Passage]:
    """Split blocks into passages.

    The texts of the passages, joined, are the texts of the blocks, each followed by a line feed.
    """
    pieces: list[tuple[Block, str]] = []
    for block in blocks:
        text = block.text.rstrip() + "\n"
        pieces += [(block, piece) for piece in _pieces(text)]
    passages, begins = [], 0
    for number, (block, text) in enumerate(pieces):
        before = pieces[number - 1][1][-CONTEXT:] if number else ""
        after = pieces[number + 1][1][:CONTEXT] if number + 1 < len(pieces) else ""
        around = "\n".join(filter(None, (block.heading, before + text + after)))
        passages.append(Passage(number, block.page, block.heading, begins, text, around))
        begins += len(text)
    return passages


def _pieces(text: str) -> Iterator[str]:
    """Yield pieces of the text: whole sentences, together at most SIZE characters.

    A new paragraph starts a new piece if the current piece is more than half full.
    """
    begins = end = 0
    for low, high in _sentences(text):
        while high - low > SIZE:  # not a sentence: a table, code, or a language without these signs
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
