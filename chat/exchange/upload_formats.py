"""What kind of file an upload is, and the lines that another program's becomes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from chat.exchange import chatgpt, claude, statements
from chat.exchange.archive import Part, is_archive, parts_of, unpacked_size
from chat.exchange.export import FORMAT, VERSION
from chat.exchange.json_stream import items
from chat.exchange.lines import EMPTY, MAX_LINE, NO_MESSAGES, ROWS, Chunk, Record, left_out, parse_line
from chat.exchange.lines import UNKNOWN as UNKNOWN_ENTRY
from chat.exchange.transcripts import Line, Transcript
from chat.exchange.transcripts import lines_of as lines_of_transcript
from chat.exchange.upload_files import lines_of, upload_of
from chat.models.imports import Import, ImportKind
from memoryhub.errors import Invalid
from workspaces.documents.reading.kinds import utf_16
from workspaces.documents.reading.plain import LOOKED_AT, guessed
from workspaces.models import User

PEEK = 4096
UNKNOWN = later("This is not an export from MemoryHub, ChatGPT or Claude, nor a list of statements.")


class Reader(Protocol):
    """A module that reads another program's export, entry by entry."""

    def is_entry(self, first: dict[str, Any]) -> bool:
        """Whether such an export begins with this."""

    def transcript_of(self, conversation: dict[str, Any], /) -> Transcript | None: ...


READERS: dict[str, Reader] = {ImportKind.CHATGPT: chatgpt, ImportKind.CLAUDE: claude}


@dataclass(frozen=True)
class Entry:
    """One conversation or statement of an upload, as lines."""

    lines: list[Line]
    read_bytes: int


def recognise(path: Path) -> str:
    """Raises Invalid for a file that is none of those we read."""
    if is_archive(path):
        return _kind_in(path)
    with path.open("rb") as file:
        beginning = file.read(PEEK).removeprefix(b"\xef\xbb\xbf").lstrip()
        if not beginning:
            raise Invalid(_("This file is empty."))
        if beginning.startswith(b"{") and _is_ours(path):
            return ImportKind.MEMORYHUB
    if beginning[:1] in b"[{":
        return _kind_in(path)
    if b"\0" in beginning or not _is_utf8(beginning):
        raise Invalid(UNKNOWN)
    return ImportKind.STATEMENTS


def make_utf8(path: Path) -> None:
    """Write a text in UTF-16 or an older code page over in UTF-8. Another file stays as it is."""
    if is_archive(path):
        return
    with path.open("rb") as file:
        beginning = file.read(LOOKED_AT)
    code = utf_16(beginning)
    if not code:
        if b"\0" in beginning or _is_text(path, "utf-8"):
            return
        code = guessed(beginning) or ""
    if not code or not _is_text(path, code):
        return
    new = path.with_suffix(".utf8")
    with path.open(encoding=code, newline="") as old, new.open("w", encoding="utf-8", newline="") as file:
        shutil.copyfileobj(old, file)
    new.chmod(0o600)
    new.replace(path)


def _is_text(path: Path, code: str) -> bool:
    try:
        with path.open(encoding=code, newline="") as file:
            while file.read(LOOKED_AT):
                pass
    except ValueError:
        return False
    return True


def prepare(imported: Import) -> Iterator[Chunk]:
    """Write the file of lines, a chunk of whole entries at a time, behind those of earlier jobs.

    What a killed worker wrote and no transaction knows of is cut off and written again.
    """
    offset, number, count = imported.looked_bytes, imported.looked_lines, imported.read_count
    path = lines_of(imported.public_id)
    path.touch(mode=0o600)
    with path.open("r+b") as out:
        out.truncate(offset)
        out.seek(offset)
        records: list[Record] = []
        for entry in _entries(imported, skip=count):
            count += 1
            for line in entry.lines:
                raw = json.dumps(line).encode() + b"\n"
                number += 1
                record = Record(number, offset, kind=line["type"], line=line)
                if record.kind == "left_out":
                    record.leave_out()
                if len(raw) > MAX_LINE:
                    raise Invalid(_("One entry of this file is too large."))
                out.write(raw)
                offset += len(raw)
                records.append(record)
            if len(records) >= ROWS or count % ROWS == 0:
                _flush(out)
                yield Chunk(
                    records, offset, number, ends=False, read_bytes=entry.read_bytes, read_count=count
                )
                records = []
        _flush(out)
        yield Chunk(records, offset, number, ends=True, read_bytes=imported.size, read_count=count)


def _entries(imported: Import, *, skip: int) -> Iterator[Entry]:
    path = upload_of(imported.public_id)
    try:
        total = max(1, unpacked_size(path))
        with parts_of(path) as parts:
            before = 0
            for part in parts:
                for value in _values(imported.kind, part, path):
                    if skip:
                        skip -= 1
                        continue
                    share = min(1.0, (before + part.read_count) / total)
                    yield Entry(_lines(imported.kind, value, imported.user), int(imported.size * share))
                before += part.read_count
    except FileNotFoundError:
        raise Invalid(_("The uploaded file is no longer here. Upload it again.")) from None


def _values(kind: str, part: Part, path: Path) -> Iterator[Any]:
    if kind == ImportKind.STATEMENTS and not _begins_as_json(path):
        return statements.lines_in(part)
    return items(part)


def _lines(kind: str, value: Any, importer: User) -> list[Line]:
    if kind == ImportKind.STATEMENTS:
        return [statements.line_of(value, importer=importer.get_username())]
    if value is None or value in ({}, [], ""):
        return [left_out(EMPTY)]
    kind = _kind_of(value) or ""
    if kind == ImportKind.CLAUDE and "chat_messages" not in value:
        return list(claude.statements_of(value))
    if kind not in READERS:
        return [left_out(NO_MESSAGES, of="chat") if _is_shell(value) else left_out(UNKNOWN_ENTRY)]
    transcript = READERS[kind].transcript_of(value)
    if transcript is None:
        return [left_out(NO_MESSAGES, of="chat")]
    return list(lines_of_transcript(transcript, source=kind, importer=importer))


def _kind_in(path: Path) -> str:
    """That of the first entry that has one. Raises Invalid where none has."""
    is_empty = True
    with parts_of(path) as parts:
        for part in parts:
            for value in items(part):
                if kind := _kind_of(value):
                    return kind
                is_empty = False
    raise Invalid(_("This file is empty.") if is_empty else UNKNOWN)


def _kind_of(entry: Any) -> str | None:
    if isinstance(entry, dict):
        found = next((kind for kind, reader in READERS.items() if reader.is_entry(entry)), None)
        return found or (ImportKind.STATEMENTS if "content" in entry else None)
    return ImportKind.STATEMENTS if isinstance(entry, str) and entry.strip() else None


def _is_shell(entry: Any) -> bool:
    """A conversation of which only what is around the messages was exported."""
    return isinstance(entry, dict) and bool({"conversation_id", "uuid", "title", "name"} & entry.keys())


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            line = parse_line(file.readline(MAX_LINE))
    except Invalid:
        return False
    if line.get("type") != FORMAT:
        return False
    version = line.get("version")
    if version != VERSION:
        raise Invalid(_("This export was made by a newer MemoryHub. Update this one first."))
    return True


def _begins_as_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(PEEK).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{")


def _is_utf8(beginning: bytes) -> bool:
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(beginning) - 3 and error.reason == "unexpected end of data"
    return True


def _flush(out: Any) -> None:
    out.flush()
    os.fsync(out.fileno())
