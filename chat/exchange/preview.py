"""What a person is shown of the lines of an import."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chat.exchange import run
from chat.exchange.lines import MAX_LINE, parse_line
from chat.models.imports import Import, ImportRow
from memories.models import Memory
from memories.writing.drafts import UNSTORABLE, cut_at_word, is_delicate
from memoryhub.errors import Invalid

SHOWN = 300  # characters of a line's text
TEXT_IN = {
    "memory": "content",
    "message": "content",
    "chat": "title",
    "workspace": "name",
    "agent": "name",
    "document": "title",
    "artifact": "title",
}


@dataclass(frozen=True)
class Shown:
    row: ImportRow
    text: str  # empty: it holds a credential, cannot be read, or the file is gone
    known: str = ""  # what the memory says that is here already
    gone: bool = False  # the file is not there any more: finished, failed or cleared away


def with_texts(imported: Import, rows: Iterable[ImportRow]) -> list[Shown]:
    """The rows with the beginning of their texts, read from the file: none of it lies in a table."""
    rows = list(rows)
    here = {row.duplicate_of for row in rows if row.duplicate_of}
    visible = Memory.objects.visible_to(imported.user).filter(deleted_at=None, public_id__in=here)
    known = dict(visible.values_list("public_id", "content"))
    try:
        with run.path_of(imported).open("rb") as file:
            shown = []
            for row in rows:
                file.seek(row.offset)
                text = _text(row, file.readline(MAX_LINE))
                shown.append(Shown(row, text, cut_at_word(known.get(row.duplicate_of, ""), SHOWN)))
            return shown
    except FileNotFoundError:
        return [
            Shown(row, "", cut_at_word(known.get(row.duplicate_of, ""), SHOWN), gone=True) for row in rows
        ]


def _text(row: ImportRow, raw: bytes) -> str:
    try:
        text = parse_line(raw).get(TEXT_IN.get(row.kind, ""))
    except Invalid:
        return ""
    if not isinstance(text, str) or is_delicate(text):
        return ""
    return cut_at_word(UNSTORABLE.sub("", text), SHOWN)
