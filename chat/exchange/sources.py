"""What kind of file an upload is, and the lines that another program's becomes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chat.exchange.lines import MAX_LINE, Chunk, parse_line
from chat.exchange.models import Import, ImportKind
from memoryhub.errors import Invalid


def recognise(path: Path) -> str:
    """Raises Invalid for a file that is none of those we read."""
    with path.open("rb") as file:
        first = file.readline(MAX_LINE)
    line = parse_line(first)
    if line.get("type") != "memoryhub":
        raise Invalid("unknown")
    return ImportKind.MEMORYHUB


def prepare(imported: Import) -> Iterator[Chunk]:
    raise NotImplementedError
