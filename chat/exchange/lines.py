"""Lines of an import, each a JSON object with a type, and the local ids of their rows.

A row keeps its id if that id is free here. Otherwise it gets an id derived from it, which is the same each time, so
that importing a file twice stores its rows once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from django.db.models import Model
from django.utils.translation import gettext as _

from chat.models.imports import Outcome, Searched
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import DomainError, Invalid, SecretRefused
from memoryhub.ids import ALPHABET, LENGTH
from memoryhub.kept import kept

SETTINGS = ("private_short_term", "reviews_proposals")  # boolean fields of a workspace
MAX_LINE = 16 * 2**20  # bytes; the line of a memory includes its revisions
ROWS = 500
ROWS_BYTES = 4 * 2**20  # a chunk ends once it has this many bytes
FORGOTTEN = kept("it was forgotten for good here")
EMPTY = kept("the entry is empty")
NO_MESSAGES = kept("the chat has no messages")
NO_STATEMENT = kept("a heading or a number is not a statement")
UNKNOWN = kept("entries of this kind are not known here")
GONE = b'{"type":"forgotten"}'  # replaces the line of a forgotten memory; shorter than every such line
KINDS = {"workspace", "agent", "chat", "message", "memory", "document", "artifact", "receipt"}


def left_out(reason: str, *, of: str = "other") -> dict[str, Any]:
    """Return the line for an entry of another program's export that is skipped; the preview counts it."""
    return {"type": "left_out", "of": of, "reason": reason}


@dataclass(eq=False)
class Record:
    """A line of an import and its outcome."""

    number: int
    offset: int
    kind: str = ""
    line: dict[str, Any] = field(default_factory=dict)
    outcome: str = Outcome.NEW
    reason: str = ""
    duplicate_of: str = ""
    became: str = ""  # the id of the row that the line created or changed
    refusal: DomainError | None = None  # the error, if a rule of the gate refused the line
    same_as: int | None = None
    fingerprint: int | None = None

    @property
    def is_new(self) -> bool:
        return self.outcome in (Outcome.NEW, Outcome.UPDATE)

    @property
    def was_forgotten(self) -> bool:
        return isinstance(self.refusal, WasForgotten)

    def refuse(self, reason: str, refusal: DomainError | None = None) -> None:
        self.outcome, self.reason, self.refusal = Outcome.REFUSED, reason[:200], refusal

    def refuse_for(self, error: DomainError) -> None:
        """Refuse the line because of this error. The reason never contains the text itself.

        For a secret or a personal number, the reason is the error's code and fields; otherwise it is the error's
        message.
        """
        if isinstance(error, SecretRefused):
            self.refuse(f"{error.code}: {', '.join(error.fields)}", error)
        else:
            self.refuse(error.message, error)

    def leave_out(self) -> None:
        """Refuse a line created by ``left_out``."""
        of, reason = self.line.get("of"), self.line.get("reason")
        self.kind = of if of in KINDS else ""
        self.refuse(reason if reason in (EMPTY, NO_MESSAGES, NO_STATEMENT, UNKNOWN) else UNKNOWN)

    def is_known(self, of: str, reason: str = "") -> None:
        self.outcome, self.duplicate_of, self.reason = Outcome.DUPLICATE, of, reason


@dataclass(frozen=True)
class Chunk:
    records: list[Record]
    offset: int  # start of the next chunk
    number: int  # lines up to that offset
    ends: bool
    read_bytes: int = 0  # bytes read of the upload, if the lines are created from it
    read_count: int = 0  # complete entries read of the upload
    read_lines: int = 0  # lines already created from the next entry
    searched: Searched | None = None  # totals up to the end of this chunk


def read_chunk(file: BinaryIO, *, offset: int, number: int) -> Chunk:
    """Return the next lines from the byte ``offset``; ``number`` is the count of lines before it."""
    file.seek(offset)
    records: list[Record] = []
    begin = offset
    while len(records) < ROWS and offset - begin < ROWS_BYTES:
        raw = file.readline(MAX_LINE + 1)
        if not raw:
            return Chunk(records, offset, number, ends=True)
        number += 1
        record = Record(number, offset)
        offset += len(raw)
        if len(raw) > MAX_LINE:
            while not raw.endswith(b"\n") and (raw := file.readline(MAX_LINE)):
                offset += len(raw)
            record.refuse(kept("the line is too long"))
        elif raw.isspace():
            continue
        else:
            _understand(record, raw)
        records.append(record)
    return Chunk(records, offset, number, ends=False)


def forget_lines(path: Path, offsets: Collection[int]) -> None:
    """Overwrite the lines at these offsets with GONE. The offsets of other lines do not change."""
    if not offsets:
        return
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            write_over(file, offset, file.readline(), GONE)
        sync(file)


def write_over(file: BinaryIO, offset: int, raw: bytes, new: bytes) -> None:
    """Overwrite the line ``raw`` with ``new``, padded to the same length. ``new`` must not be longer."""
    end = b"\n" if raw.endswith(b"\n") else b""
    file.seek(offset)
    file.write(new.ljust(len(raw) - len(end)) + end)


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def parse_line(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of one line. Raises Invalid if the line is not a JSON object."""
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Invalid(_("This line is not a JSON object."))
    return value


def _understand(record: Record, raw: bytes) -> None:
    try:
        line = parse_line(raw)
    except Invalid as error:
        record.refuse(error.message)
        return
    kind = line.get("type")
    record.line = line
    if kind in KINDS:
        record.kind = str(kind)
    elif kind == "forgotten":
        record.kind = "memory"
        record.refuse(FORGOTTEN, WasForgotten())
    elif kind == "left_out":
        record.leave_out()
    elif record.offset == 0 and kind == "memoryhub":
        record.kind = "header"
    else:
        record.refuse(kept("lines of this type are not known here"))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


@dataclass(frozen=True)
class Id:
    local: str
    is_here: bool  # already stored, by an earlier import or because the file was exported here


FindTaken = Callable[[set[str]], Mapping[str, str]]


def derived_id(prefix: str, *of: str) -> str:
    """Return the public id derived from these strings by a hash."""
    number = int.from_bytes(
        hashlib.sha256("\0".join((prefix, *of)).encode("utf-8", "replace")).digest(), "big"
    )
    letters = []
    for _index in range(LENGTH):
        number, at = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[at])
    return f"{prefix}_{''.join(letters)}"


def taken_by_none(model: type[Model], public_ids: Iterable[str]) -> dict[str, str]:
    """Return the existing rows among these ids, each with the value "".

    The caller replaces "" with the location of each row that the importer may see.
    """
    rows = model._default_manager.filter(public_id__in=public_ids)
    return dict.fromkeys(rows.values_list("public_id", flat=True), "")


def resolve(
    prefix: str, wanted: Iterable[tuple[str, str]], find_taken: FindTaken
) -> dict[tuple[str, str], Id]:
    """Return the local id for each (id in the file, target). Calls ``find_taken`` once.

    ``find_taken`` returns the location of each existing row among some public ids, or "" if the importer may not see
    it.
    """
    pairs = set(wanted)
    own = {pair: derived_id(prefix, pair[1], pair[0]) for pair in pairs}
    usable = re.compile(rf"{prefix}_[A-Za-z0-9]{{{LENGTH}}}")
    kept = {pair for pair in pairs if usable.fullmatch(pair[0])}
    taken = find_taken({pair[0] for pair in kept} | set(own.values()))
    found = {}
    for pair in pairs:
        given, into = pair
        if taken.get(own[pair]) == into:
            found[pair] = Id(own[pair], is_here=True)
        elif pair in kept and given not in taken:
            found[pair] = Id(given, is_here=False)
        elif pair in kept and taken[given] == into:
            found[pair] = Id(given, is_here=True)
        else:
            found[pair] = Id(own[pair], is_here=False)
    return found
