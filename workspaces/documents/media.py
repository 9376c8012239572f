"""What a file is: by its first bytes, and where those say nothing by its name's ending. Its sender is not believed."""

from __future__ import annotations

import unicodedata
from pathlib import PurePath

from workspaces.models.document import TITLE_LENGTH

PDF = "application/pdf"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT, EPUB, ZIP = "application/vnd.oasis.opendocument.text", "application/epub+zip", "application/zip"
HTML, MARKDOWN, TEXT, CSV, JSON, MAIL = (
    "text/html",
    "text/markdown",
    "text/plain",
    "text/csv",
    "application/json",
    "message/rfc822",
)
PNG, JPEG, GIF, WEBP, TIFF, BMP = (f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "tiff", "bmp"))
UNKNOWN = "application/octet-stream"
NAMES = {  # for lists
    PDF: "PDF",
    WORD: "Word",
    SLIDES: "PowerPoint",
    SHEETS: "Excel",
    ODT: "OpenDocument text",
    EPUB: "EPUB",
    HTML: "HTML",
    MARKDOWN: "Markdown",
    TEXT: "Text",
    CSV: "CSV",
    JSON: "JSON",
    MAIL: "Email",
    PNG: "PNG picture",
    JPEG: "JPEG picture",
    GIF: "GIF picture",
    WEBP: "WebP picture",
    TIFF: "TIFF picture",
    BMP: "BMP picture",
    ZIP: "Archive",
    UNKNOWN: "Unknown",
}
OF_ZIPS = {".docx": WORD, ".pptx": SLIDES, ".xlsx": SHEETS, ".odt": ODT, ".epub": EPUB}
OF_TEXTS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".md", ".markdown"), MARKDOWN),
    **dict.fromkeys((".csv", ".tsv"), CSV),
    ".json": JSON,
    ".eml": MAIL,
}
OF_PICTURES = {".png": PNG, ".jpg": JPEG, ".gif": GIF, ".webp": WEBP, ".tif": TIFF, ".bmp": BMP}
ENDINGS = {
    kind: ending for ending, kind in reversed({**OF_ZIPS, **OF_TEXTS, **OF_PICTURES, ".pdf": PDF}.items())
}
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF8", GIF),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
)


def media_type(name: str, head: bytes) -> str:
    ending = PurePath(name).suffix.lower()
    if b"%PDF-" in head:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return OF_ZIPS.get(ending, ZIP)
    for begins, picture in _PICTURES:
        if head.startswith(begins):
            return picture
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head.startswith(b"BM") and b"\0" in head:
        return BMP
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return UNKNOWN
    return OF_TEXTS.get(
        ending, HTML if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")) else TEXT
    )


def clean_title(name: str) -> str:
    """A title for people, of a file's name: the last part of a path, as ``seen`` shows it."""
    return seen(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def seen(title: str) -> str:
    """Without signs that steer a terminal or the reading direction."""
    normal = unicodedata.normalize("NFC", title)
    shown = "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in normal)
    return " ".join(shown.split())[:TITLE_LENGTH].strip()
