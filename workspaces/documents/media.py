"""Detection of a file's kind: by its first bytes, else by its name's ending. The sender's type is not believed."""

from __future__ import annotations

import unicodedata

from workspaces.documents.reading.kinds import (
    BMP,
    CALENDAR,
    CSV,
    DOC,
    EPUB,
    GIF,
    HTML,
    JPEG,
    JSON,
    MAIL,
    MARKDOWN,
    MBOX,
    MSG,
    ODP,
    ODS,
    ODT,
    OF_OTHERS,
    OF_TEXTS,
    OF_ZIPS,
    PDF,
    PNG,
    PPT,
    RTF,
    SHEETS,
    SLIDES,
    TEXT,
    TIFF,
    UNKNOWN,
    WEBP,
    WORD,
    XLS,
    XLSB,
    ZIP,
    by_name,
    first_look,
)
from workspaces.models.document import TITLE_LENGTH

NAMES = {  # for lists
    PDF: "PDF",
    WORD: "Word",
    DOC: "Word (97 to 2003)",
    RTF: "Rich text",
    SLIDES: "PowerPoint",
    PPT: "PowerPoint (97 to 2003)",
    SHEETS: "Excel",
    XLS: "Excel (97 to 2003)",
    XLSB: "Excel, binary",
    ODT: "OpenDocument text",
    ODS: "OpenDocument spreadsheet",
    ODP: "OpenDocument presentation",
    EPUB: "EPUB",
    HTML: "HTML",
    MARKDOWN: "Markdown",
    TEXT: "Text",
    CSV: "CSV",
    JSON: "JSON",
    MAIL: "Email",
    MBOX: "Mailbox",
    MSG: "Outlook message",
    CALENDAR: "Calendar",
    PNG: "PNG picture",
    JPEG: "JPEG picture",
    GIF: "GIF picture",
    WEBP: "WebP picture",
    TIFF: "TIFF picture",
    BMP: "BMP picture",
    ZIP: "Archive",
    UNKNOWN: "Unknown",
}
ENDINGS = {kind: ending for ending, kind in reversed({**OF_ZIPS, **OF_TEXTS, **OF_OTHERS}.items())}


def media_type(name: str, head: bytes) -> str:
    """The likeliest one. Which one it is, the reader's process tells when it has looked inside."""
    seen, named = first_look(head), by_name(name)
    if seen == ZIP:
        return named if named in OF_ZIPS.values() else ZIP
    if seen == TEXT:
        looks_like_html = head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
        return named if named in OF_TEXTS.values() else HTML if looks_like_html else TEXT
    return seen or (named if named in OF_OTHERS.values() and not named.startswith("image/") else UNKNOWN)


def clean_title(name: str) -> str:
    """A title for people, of a file's name: the last part of a path, as ``seen`` shows it."""
    return seen(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def seen(title: str) -> str:
    """Without signs that steer a terminal or the reading direction."""
    normal = unicodedata.normalize("NFC", title)
    shown = "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in normal)
    return " ".join(shown.split())[:TITLE_LENGTH].strip()
