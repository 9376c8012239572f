"""Removal of forgotten memories from the files of a user's own unfinished imports.

Files of other users stay unchanged, because forgotten texts are refused when their lines are checked or stored.
"""

import json
import re
from collections.abc import Callable
from typing import Any, BinaryIO

from django.db import transaction

from chat.import_export import import_jobs, upload_formats
from chat.import_export.import_lines import FORGOTTEN, GONE, MAX_LINE, overwrite_line, parse_line, sync
from chat.models.imports import Import, ImportKind, ImportStatus, Outcome
from memories.forgetting.remaining_copies import QUOTING, Wanted, holding, named
from memories.writing.tombstones import essence
from memoryhub.errors import Invalid
from workspaces.actions.purging import Counts
from workspaces.models import User

Line = dict[str, Any]


def forget_in_imports(wanted: Wanted, by: User) -> Counts:
    """Remove forgotten memories, and quotations of them, from the user's unfinished imports. Count changed lines.

    Messages of chats stay, as they do in the database. Reads each file once (100 MB in one to two seconds).
    """
    clean = _cleaner(wanted)
    number = 0
    unfinished = Import.objects.of(by).exclude(status__in=[ImportStatus.DONE, ImportStatus.FAILED])
    for pk in list(unfinished.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():  # waits for a chunk that is being checked or stored
            locked = unfinished.select_for_update(of=("self",)).filter(pk=pk).first()
            if locked is not None:
                number += _forget_in(locked, clean)
    return named("lines of imports", number)


def _cleaner(wanted: Wanted) -> Callable[[Line], Line | None]:
    essences, holds = {essence(text) for text in wanted.texts}, holding(wanted.texts)

    def says(text: object) -> bool:
        return isinstance(text, str) and essence(text) in essences

    def clean(line: Line) -> Line | None:
        """Return the line without the forgotten texts, or None if its content is one of them."""
        if line.get("type") == "receipt" and isinstance(line.get("items"), list):
            return line | {"items": [item for item in line["items"] if not _quotes(item, "content", holds)]}
        if line.get("type") != "memory":
            return line
        if says(line.get("content")):
            return None
        cleaned = dict(line)
        if says(line.get("summary")):
            del cleaned["summary"]
        if _quotes(line, "source_excerpt", holds):
            del cleaned["source_excerpt"]
        if isinstance(line.get("revisions"), list):
            cleaned["revisions"] = [_earlier(revision, holds) for revision in line["revisions"]]
        return cleaned

    return clean


def _quotes(where: Any, name: str, holds: re.Pattern[str]) -> bool:
    text = where.get(name) if isinstance(where, dict) else None
    return isinstance(text, str) and holds.search(text) is not None


def _earlier(revision: Any, holds: re.Pattern[str]) -> Any:
    before = revision.get("before") if isinstance(revision, dict) else None
    if not isinstance(before, dict):
        return revision
    gone = {name for name in QUOTING if _quotes(before, name, holds)}
    return revision | {"before": {name: value for name, value in before.items() if name not in gone}}


def _forget_in(imported: Import, clean: Callable[[Line], Line | None]) -> int:
    """Clean the lines written so far, and return how many changed. Later lines are refused when they are checked."""
    native = imported.kind == ImportKind.MEMORYHUB
    if imported.checked_at is not None and not native and not imported.sample:
        upload_formats.remove_upload(imported.public_id)
    end = imported.size if native else imported.looked_bytes
    gone: list[int] = []
    try:
        with import_jobs.lines_file(imported).open("r+b") as file:
            changed = _clean_lines(file, end, clean, gone)
            sync(file)
    except FileNotFoundError:
        return 0
    _refuse(imported, gone)
    return changed


def _clean_lines(file: BinaryIO, end: int, clean: Callable[[Line], Line | None], gone: list[int]) -> int:
    """Replace each line before the byte ``end`` by the result of ``clean``, and return how many changed.

    A line for which ``clean`` returns None, or whose result is longer, is overwritten as removed, and its offset is
    added to ``gone``.
    """
    changed = offset = 0
    while offset < end and (raw := file.readline(MAX_LINE)):
        try:
            line = parse_line(raw)
        except Invalid:
            line = {}
        cleaned = clean(line)
        if cleaned != line:
            # A cleaned line is shorter, unless its numbers were written in an unusual form: then it is removed.
            text = json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))
            new = text.encode("utf-8", "surrogatepass")
            if cleaned is None or len(new) > len(raw.rstrip(b"\n")):
                new = GONE
                gone.append(offset)
            overwrite_line(file, offset, raw, new)
            changed += 1
        offset += len(raw)
        file.seek(offset)
    return changed


def _refuse(imported: Import, offsets: list[int]) -> None:
    """Mark the preview's rows of removed lines as refused, and correct the preview's counts."""
    for row in imported.rows.filter(offset__in=offsets).exclude(outcome=Outcome.REFUSED):
        counts = imported.foreseen.get(row.kind)
        if counts and counts.get(row.outcome):
            counts[row.outcome] -= 1
            counts[Outcome.REFUSED] = counts.get(Outcome.REFUSED, 0) + 1
        row.outcome, row.reason, row.duplicate_of, row.same_as = Outcome.REFUSED, FORGOTTEN, "", None
        row.save(update_fields=["outcome", "reason", "duplicate_of", "same_as"])
    imported.save(update_fields=["foreseen"])
