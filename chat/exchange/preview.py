"""Preview of an import's lines and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.exchange import import_run
from chat.exchange.lines import MAX_LINE, parse_line
from chat.models import Chat
from chat.models.imports import Import, ImportRow, ImportStatus, Outcome
from memories.models import Memory
from memories.writing.drafts import UNSTORABLE, cut_at_word, is_delicate
from memoryhub.errors import Invalid
from workspaces.models import Agent, Artifact, Document, User, Workspace

REASONS = 20  # limit of reasons for refusals on the page
SHOWN = 300  # limit in characters of a line's text
TEXT_IN = {
    "memory": "content",
    "message": "content",
    "chat": "title",
    "workspace": "name",
    "agent": "name",
    "document": "title",
    "artifact": "title",
}
# For each prefix of ids: the rows that a user may see, the field with the text, and the page.
PAGES: dict[str, tuple[Callable[[User], Any], str, str]] = {
    "mem": (
        lambda user: Memory.objects.visible_to(user).filter(deleted_at=None),
        "content",
        "chat:workspace",
    ),
    "chat": (lambda user: Chat.objects.visible_to(user).live(), "title", "chat:chat"),
    "doc": (lambda user: Document.objects.visible_to(user).live(), "title", "workspaces:document"),
    "art": (lambda user: Artifact.objects.visible_to(user).live(), "title", "workspaces:artifact"),
    "agent": (lambda user: Agent.objects.visible_to(user), "name", "workspaces:agent"),
    "ws": (lambda user: Workspace.objects.visible_to(user), "name", "chat:workspace"),
}


@dataclass(frozen=True)
class Shown:
    row: ImportRow
    text: str  # empty if the line holds a credential or cannot be read, or if the file is gone
    here: str = ""  # current text of the row that the line became or duplicates
    address: str = ""  # URL of that row
    gone: bool = False  # the file was removed, because the import is finished, failed or expired


def with_texts(imported: Import, rows: Iterable[ImportRow]) -> list[Shown]:
    """Return the rows with the beginning of their texts, which is read from the file and never stored in a table.

    Rows that were stored also have their current text.
    """
    rows = list(rows)
    here = _here(imported, {row.became or row.duplicate_of for row in rows} - {""})

    def shown(row: ImportRow, text: str = "", *, gone: bool = False) -> Shown:
        what, address = here.get(row.became or row.duplicate_of, ("", ""))
        return Shown(row, text, cut_at_word(what, SHOWN), address, gone)

    if imported.status == ImportStatus.DONE:  # the file is removed soon afterwards
        return [shown(row, gone=True) for row in rows]
    try:
        with import_run.path_of(imported).open("rb") as file:
            found = []
            for row in rows:
                file.seek(row.offset)
                found.append(shown(row, _text(row, file.readline(MAX_LINE))))
            return found
    except FileNotFoundError:
        return [shown(row, gone=True) for row in rows]


def refusals(imported: Import) -> list[dict[str, Any]]:
    """Return the number of refused lines for each kind and reason, the most frequent first."""
    rows = imported.rows.filter(outcome=Outcome.REFUSED).order_by().values("kind", "reason")
    counted = rows.annotate(count=Count("id")).order_by("-count", "reason")
    return [dict(each) for each in counted[:REASONS]]


def _here(imported: Import, ids: set[str]) -> dict[str, tuple[str, str]]:
    """Return text and URL of the rows with these ids that the importer may see. One query for each kind."""
    found: dict[str, tuple[str, str]] = {}
    for prefix, (visible_to, says, page) in PAGES.items():
        wanted = {each for each in ids if each.startswith(f"{prefix}_")}
        place = "public_id" if prefix == "ws" else "workspace__public_id"
        rows = visible_to(imported.user).filter(public_id__in=wanted).values_list("public_id", says, place)
        for public_id, text, at in rows if wanted else ():
            found[public_id] = (text or _("New chat"), _address(page, public_id, text, at))
    return found


def _address(page: str, public_id: str, text: str, place: str) -> str:
    if page == "chat:chat":
        return reverse(page, args=[public_id])
    if page == "chat:workspace":  # a memory's URL opens the memory panel with a search for its text
        return reverse(page, args=[place]) + (
            f"?{urlencode({'find': text[:100]})}" if place != public_id else ""
        )
    return reverse(page, args=[place, public_id])


def _text(row: ImportRow, raw: bytes) -> str:
    try:
        text = parse_line(raw).get(TEXT_IN.get(row.kind, ""))
    except Invalid:
        return ""
    if not isinstance(text, str) or is_delicate(text):
        return ""
    return cut_at_word(UNSTORABLE.sub("", text), SHOWN)
