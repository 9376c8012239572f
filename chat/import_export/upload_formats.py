"""Uploads: storage until the import is finished, readable by the server's user only, and conversion to lines."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from chat.import_export import other_programs
from chat.import_export.export import FORMAT, VERSION
from chat.import_export.import_lines import (
    EMPTY,
    MAX_LINE,
    NO_MESSAGES,
    ROWS,
    Chunk,
    Record,
    parse_line,
    skipped_line,
    sync,
)
from chat.import_export.import_lines import UNKNOWN as UNKNOWN_ENTRY
from chat.import_export.other_programs import Line, Transcript, own_words, statements_in
from chat.import_export.other_programs import lines_of as transcript_lines
from chat.import_export.upload_reader import Part, is_archive, is_utf8, items, parts_of, unpacked_size
from chat.models.imports import Import, ImportKind, Searched
from memories.judging.sentences import own_part
from memoryhub.errors import Invalid, TooLarge
from memoryhub.localization import grouped
from memoryhub.stored_files import files_folder
from workspaces.documents.reading.kinds import utf_16
from workspaces.documents.reading.plain import LOOKED_AT, guessed
from workspaces.models import User

NAME = re.compile(r"imp_[A-Za-z0-9]{24}")


def folder_of(public_id: str) -> Path:
    assert NAME.fullmatch(public_id), "a public id of an import"
    return files_folder() / "imports" / public_id


def store_upload(public_id: str, pieces: Iterable[bytes]) -> Path:
    """Save an upload. If it exceeds the size limit, remove it and raise TooLarge."""
    folder = folder_of(public_id)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    path, size = folder / "upload", 0
    try:
        path.touch(mode=0o600)
        with path.open("r+b") as file:
            for piece in pieces:
                size += len(piece)
                if size > settings.IMPORT_MAX_BYTES:
                    raise too_large()
                file.write(piece)
    except BaseException:
        remove(public_id)
        raise
    return path


def too_large() -> TooLarge:
    return TooLarge(
        _("A file to import may have at most %s MB.") % grouped(settings.IMPORT_MAX_BYTES // 2**20)
    )


def upload_of(public_id: str) -> Path:
    return folder_of(public_id) / "upload"


def lines_of(public_id: str) -> Path:
    """Return the path of the lines that are created from another program's export."""
    return folder_of(public_id) / "lines"


def remove_upload(public_id: str) -> None:
    """Remove the upload of another program's export, once all lines are created from it."""
    upload_of(public_id).unlink(missing_ok=True)


def remove(public_id: str) -> None:
    shutil.rmtree(folder_of(public_id), ignore_errors=True)


def stored_imports() -> Iterator[str]:
    """Yield the ids of imports that have files."""
    folder = files_folder() / "imports"
    if folder.is_dir():
        yield from sorted(each.name for each in folder.iterdir() if NAME.fullmatch(each.name))


def is_older(public_id: str, *, than: datetime) -> bool:
    try:
        return folder_of(public_id).stat().st_mtime < than.timestamp()
    except FileNotFoundError:
        return False


FORM = 65_536  # bytes of a form in addition to its file


def refuse_too_large(content_length: str | None) -> None:
    """Raise TooLarge if the Content-Length is above the limit. The received bytes are counted separately."""
    if content_length and content_length.isdigit() and int(content_length) > settings.IMPORT_MAX_BYTES + FORM:
        raise too_large()


PEEK = 4096
# Limit in characters of the importer's messages that the encoder reads for a preview (about 10,000 a second on one
# core), and the part of the limit that is available from the beginning of the file.
READ_TIMES = 3  # passes over each message: the whole text and its clauses
SAMPLE, SAMPLE_BEGIN = 150_000, 50_000
# A chunk ends at this number of characters, so that it stays within a job's time limit.
SEARCHED_AT_ONCE = 100_000
UNKNOWN = later("This is not an export from MemoryHub, ChatGPT or Claude, nor a list of statements.")


@dataclass(frozen=True)
class Reader:
    """Recognition and conversion of the conversations of one other program's export."""

    names: frozenset[str]  # fields of which each entry of such an export has one
    transcript_of: Callable[[dict[str, Any]], Transcript | None]


READERS: dict[str, Reader] = {
    ImportKind.CHATGPT: Reader(frozenset({"mapping"}), other_programs.chatgpt_transcript),
    ImportKind.CLAUDE: Reader(
        frozenset({"chat_messages", "conversations_memory"}), other_programs.claude_transcript
    ),
}


@dataclass(frozen=True)
class Entry:
    """A conversation or statement of an upload, converted to import lines."""

    lines: list[Line]
    read_bytes: int
    source: str = ""
    own_words: dict[str, str] = field(default_factory=dict)  # text written by the importer, by message id


def detect_kind(path: Path) -> str:
    """Return the kind of a file. Raises Invalid for an empty file or an unknown format."""
    if is_archive(path):
        return _kind_in(path)
    beginning = _beginning(path)
    if not beginning:
        raise Invalid(_("This file is empty."))
    if beginning.startswith(b"{") and _is_ours(path):
        return ImportKind.MEMORYHUB
    if beginning[:1] in b"[{":
        return _kind_in(path)
    if b"\0" in beginning or not is_utf8(beginning):
        raise Invalid(UNKNOWN)
    return ImportKind.STATEMENTS


def make_utf8(path: Path) -> None:
    """Convert a text file in UTF-16 or an older code page to UTF-8, in place. Other files stay unchanged."""
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


def prepare(imported: Import, *, samples: bool) -> Iterator[Chunk]:
    """Convert another program's export to lines in the import's file, and yield each chunk of lines once it is written.

    Lines that a killed worker wrote without a commit are cut off and written again. With ``samples``, only a part of a
    large file's messages is searched for statements.
    """
    path = lines_of(imported.public_id)
    path.touch(mode=0o600)
    size = imported.size if samples else 0
    sampling = Sampling(Searched.stored(imported.searched), size)
    with path.open("r+b") as out:
        out.truncate(imported.looked_bytes)
        out.seek(imported.looked_bytes)
        batch = Batch(imported.looked_bytes, imported.looked_lines, sampling)
        count, done, read_bytes = imported.read_count, imported.read_lines, imported.read_bytes
        for entry in _entries(imported, skip=count):
            read_bytes = entry.read_bytes
            for line in entry.lines[done:]:
                batch.add(line, entry)
                done += 1
                if batch.is_full:
                    yield batch.write(out, read_bytes=read_bytes, read_count=count, read_lines=done)
            count, done = count + 1, 0
        yield batch.write(out, read_bytes=imported.size, read_count=count, ends=True)


class Sampling:
    """Selection of the messages to search for statements: all if ``size`` is 0, else as many as take half a minute.

    ``size`` is that of the file in bytes. The limit grows as the file is read, so that it is searched in all parts.
    """

    def __init__(self, searched: Searched, size: int) -> None:
        self.size = size
        self.searched = searched

    def takes(self, text: str, read_bytes: int) -> bool:
        """Return whether to search this message of the importer for statements, and count it."""
        now = self.searched
        allowed = SAMPLE_BEGIN + SAMPLE * read_bytes / self.size if self.size else None
        is_taken = allowed is None or now.characters < allowed
        cost = READ_TIMES * len(own_part(text)) if is_taken else 0
        self.searched = replace(
            now,
            messages=now.messages + 1,
            searched=now.searched + is_taken,
            characters=now.characters + cost,
        )
        return is_taken


class Batch:
    """The import lines to write as one chunk. Statements are searched for in all their messages together."""

    def __init__(self, offset: int, number: int, sampling: Sampling) -> None:
        self.offset, self.number, self.sampling = offset, number, sampling
        self._begin()

    def _begin(self) -> None:
        self.lines: list[Line] = []
        self.searched: dict[int, tuple[str, Line, str]] = {}  # by the index of the message's line
        self.searched_from = self.sampling.searched.characters

    def add(self, line: Line, entry: Entry) -> None:
        text = entry.own_words.get(line.get("id", ""), "") if line["type"] == "message" else ""
        if text and self.sampling.takes(text, entry.read_bytes):
            self.searched[len(self.lines)] = (entry.source, line, text)
        self.lines.append(line)

    @property
    def is_full(self) -> bool:
        searched = self.sampling.searched.characters - self.searched_from
        return len(self.lines) >= ROWS or searched >= SEARCHED_AT_ONCE

    def write(self, out: BinaryIO, **read: Any) -> Chunk:
        """Write the lines, each followed by its statements, and empty the batch. ``read``: fields of the chunk."""
        statements = dict(zip(self.searched, statements_in(list(self.searched.values())), strict=True))
        records: list[Record] = []
        for place, line in enumerate(self.lines):
            for each in (line, *statements.get(place, ())):
                raw = json.dumps(each).encode() + b"\n"
                if len(raw) > MAX_LINE:
                    raise Invalid(_("One entry of this file is too large."))
                self.number += 1
                record = Record(self.number, self.offset, kind=each["type"], line=each)
                if record.kind == "left_out":
                    record.leave_out()
                out.write(raw)
                self.offset += len(raw)
                records.append(record)
        sync(out)
        self._begin()
        read.setdefault("ends", False)
        return Chunk(records, self.offset, self.number, searched=self.sampling.searched, **read)


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
                    yield _entry(imported.kind, value, imported.user, int(imported.size * share))
                before += part.read_count
    except FileNotFoundError:
        raise Invalid(_("The uploaded file is no longer here. Upload it again.")) from None


def _values(kind: str, part: Part, path: Path) -> Iterator[Any]:
    if kind == ImportKind.STATEMENTS and not _beginning(path).startswith((b"[", b"{")):
        return other_programs.lines_in(part)
    return _entries_in(part)


def _entries_in(part: Part) -> Iterator[Any]:
    """Yield the elements of an array, which may be inside an object under ``conversations``."""
    for value in items(part):
        wrapped = value.get("conversations") if isinstance(value, dict) else None
        yield from wrapped if isinstance(wrapped, list) else [value]


def _entry(kind: str, value: Any, importer: User, read_bytes: int) -> Entry:
    if kind == ImportKind.STATEMENTS:
        return Entry([other_programs.line_of(value, importer=importer.get_username())], read_bytes)
    if value is None or value in ({}, [], ""):
        return Entry([skipped_line(EMPTY)], read_bytes)
    kind = _kind_of(value) or ""
    if kind == ImportKind.CLAUDE and "chat_messages" not in value:
        return Entry(list(other_programs.statements_of(value)), read_bytes)
    if kind not in READERS:
        # Fields of a conversation that was exported without messages.
        is_chat = isinstance(value, dict) and {"conversation_id", "uuid", "title", "name"} & value.keys()
        unread = skipped_line(NO_MESSAGES, of="chat") if is_chat else skipped_line(UNKNOWN_ENTRY)
        return Entry([unread], read_bytes)
    transcript = READERS[kind].transcript_of(value)
    if transcript is None:
        return Entry([skipped_line(NO_MESSAGES, of="chat")], read_bytes)
    return Entry(
        list(transcript_lines(transcript, source=kind, importer=importer)),
        read_bytes,
        kind,
        own_words(transcript, source=kind, importer=importer),
    )


def _kind_in(path: Path) -> str:
    """Return the kind of the first conversation, or else of the first statement. Raises Invalid if there is neither."""
    is_empty = True
    otherwise = ""
    with parts_of(path) as parts:
        for part in parts:
            for value in _entries_in(part):
                kind = _kind_of(value)
                if kind in READERS:
                    return str(kind)
                otherwise = otherwise or kind or ""
                is_empty = False
    if otherwise:
        return otherwise
    raise Invalid(_("This file is empty.") if is_empty else UNKNOWN)


def _kind_of(entry: object) -> str | None:
    if isinstance(entry, dict):
        import_kind = next((kind for kind, reader in READERS.items() if reader.names & entry.keys()), None)
        return import_kind or (ImportKind.STATEMENTS if other_programs.TEXTS & entry.keys() else None)
    return ImportKind.STATEMENTS if isinstance(entry, str) and entry.strip() else None


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


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(PEEK).removeprefix(b"\xef\xbb\xbf").lstrip()
