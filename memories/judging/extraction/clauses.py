"""What of a sentence might stand alone: every run of its clauses."""

# ruff: noqa: RUF001  marks and letters of other scripts are meant
import re

MOST_CUTS = 6
# Words of many languages that join clauses: a place to cut, and nothing to begin a statement with.
_JOINS = (
    "and but so that because since while which|und aber dass weil denn|y pero que porque|et mais|e mas"
    "|maar dat omdat|che perché|ale że|и а но что потому|और लेकिन|và nhưng"
).replace(" ", "|")
_CUT = re.compile(rf"[,;:–—]\s+|\s[-–—]+\s|[，、；：]|\s+(?=(?:{_JOINS})\s)", re.IGNORECASE)
_LEAD = re.compile(rf"(?:(?:{_JOINS})\s+|[\s,;:–—-]+|而且|而|但是|但|所以)+", re.IGNORECASE)
_ENDS = " ,;:.!。！，；：…–—-\n、"

Span = tuple[int, int]


def clauses(text: str, start: int, end: int) -> dict[Span, tuple[bool, bool]]:
    """Every run of clauses of the sentence, and whether it begins and ends with it. At most 28."""
    cuts = [
        start + match.end() for match in _CUT.finditer(text[start:end]) if 2 < match.end() < end - start - 1
    ]
    places = [start, *cuts[:MOST_CUTS], end]
    found: dict[Span, tuple[bool, bool]] = {}
    for first in range(len(places) - 1):
        for last in range(first + 1, len(places)):
            span = trim(text, places[first], places[last])
            if span[1] - span[0] >= 2:
                found.setdefault(span, (first == 0, last == len(places) - 1))
    return found


def trim(text: str, start: int, end: int) -> Span:
    """Without the words and marks that join it to its neighbours."""
    if match := _LEAD.match(text[start:end]):
        start += match.end()
    while end > start and text[end - 1] in _ENDS:
        end -= 1
    return start, end
