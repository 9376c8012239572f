"""Lines of an import: JSON objects, one a line, each with a type; and the ids that they get here.

A row keeps its id if that is free, else gets one derived from it, always the same: importing a file twice stores its
rows once.
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

SETTINGS = ("private_short_term", "reviews_proposals")  # of a workspace, on or off
MAX_LINE = 16 * 2**20  # bytes; a memory's line holds its history
ROWS = 500
ROWS_BYTES = 4 * 2**20  # no more lines are read into a chunk that has so much
FORGOTTEN = kept("it was forgotten for good here")
EMPTY = kept("the entry is empty")
NO_MESSAGES = kept("the chat has no messages")
NO_STATEMENT = kept("a heading or a number is not a statement")
UNKNOWN = kept("entries of this kind are not known here")
GONE = b'{"type":"forgotten"}'  # in the place of a memory's line; shorter than any
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
    became: str = ""  # the id of what was stored of it, or changed by it
    refusal: DomainError | None = None  # what the gate's rules said, if it was they
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
        """Store the reason of a refusal: a word for a secret or a personal number, else the wrong fields and what is
        allowed, never the text itself.
        """
        if isinstance(error, SecretRefused):
            self.refuse(f"{error.code}: {', '.join(error.fields)}", error)
        else:
            self.refuse(error.message, error)

    def leave_out(self) -> None:
        """Refuse what ``left_out`` made a line of."""
        of, reason = self.line.get("of"), self.line.get("reason")
        self.kind = of if of in KINDS else ""
        self.refuse(reason if reason in (EMPTY, NO_MESSAGES, NO_STATEMENT, UNKNOWN) else UNKNOWN)

    def is_known(self, of: str, reason: str = "") -> None:
        self.outcome, self.duplicate_of, self.reason = Outcome.DUPLICATE, of, reason


@dataclass(frozen=True)
class Chunk:
    records: list[Record]
    offset: int  # where the next one begins
    number: int  # lines up to there
    ends: bool
    read_bytes: int = 0  # of the upload, where the lines are made from it
    read_count: int = 0  # whole entries of it
    read_lines: int = 0  # of the next entry
    searched: Searched | None = None  # up to here


def read_chunk(file: BinaryIO, *, offset: int, number: int) -> Chunk:
    """Return the next lines from ``offset``, the ``number``-th being the last one before it."""
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
    """Write over these lines of memories that they were forgotten; the others stay where they are."""
    if not offsets:
        return
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            write_over(file, offset, file.readline(), GONE)
        sync(file)


def write_over(file: BinaryIO, offset: int, raw: bytes, new: bytes) -> None:
    """Put ``new``, which is no longer, in the place of the line ``raw`` with its end."""
    end = b"\n" if raw.endswith(b"\n") else b""
    file.seek(offset)
    file.write(new.ljust(len(raw) - len(end)) + end)


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def parse_line(raw: bytes) -> dict[str, Any]:
    """Return the object of one line. Raises Invalid."""
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
    is_here: bool  # stored already, by an earlier import or because it comes from this installation


FindTaken = Callable[[set[str]], Mapping[str, str]]


def derived_id(prefix: str, *of: str) -> str:
    """Return the public id derived from these words, always the same."""
    number = int.from_bytes(
        hashlib.sha256("\0".join((prefix, *of)).encode("utf-8", "replace")).digest(), "big"
    )
    letters = []
    for _index in range(LENGTH):
        number, at = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[at])
    return f"{prefix}_{''.join(letters)}"


def taken_by_none(model: type[Model], public_ids: Iterable[str]) -> dict[str, str]:
    """Return those of these ids that are taken, each with an empty place, before it is known what the importer sees."""
    rows = model._default_manager.filter(public_id__in=public_ids)
    return dict.fromkeys(rows.values_list("public_id", flat=True), "")


def resolve(
    prefix: str, wanted: Iterable[tuple[str, str]], find_taken: FindTaken
) -> dict[tuple[str, str], Id]:
    """Return the id here for each (id in the file, target). One call of ``find_taken``.

    ``find_taken`` returns the place of those of some public ids that are taken; empty if the importer may not see it.
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
