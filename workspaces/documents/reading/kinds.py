"""Readable media types, and detection of a file's type by its content.

Does not import Django, because it runs in the process that reads untrusted files.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import NamedTuple

MOST_UNPACKED = 300_000_000  # declared bytes of all files in an archive
MOST_PACKED_FILES = 10_000
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OASIS = "application/vnd.oasis.opendocument."
PDF, RTF = "application/pdf", "application/rtf"
WORD, SLIDES, SHEETS = (
    _OFFICE + kind for kind in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet")
)  # fmt: skip
ODT, ODS, ODP = (_OASIS + kind for kind in ("text", "spreadsheet", "presentation"))
DOC, PPT, XLS = "application/msword", "application/vnd.ms-powerpoint", "application/vnd.ms-excel"
XLSB, MSG = "application/vnd.ms-excel.sheet.binary.macroEnabled.12", "application/vnd.ms-outlook"
EPUB, ZIP = "application/epub+zip", "application/zip"
HTML, MARKDOWN, TEXT, CSV = "text/html", "text/markdown", "text/plain", "text/csv"
CALENDAR = "text/calendar"
JSON, MAIL, MBOX = "application/json", "message/rfc822", "application/mbox"
PNG, JPEG, GIF, WEBP, TIFF, BMP = (f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "tiff", "bmp"))
UNKNOWN = "application/octet-stream"
WEB_PAGE = "text/html; of=web"  # only the main text is read, while a document is read completely

OF_ZIPS = {
    **dict.fromkeys((".docx", ".dotx", ".docm", ".dotm"), WORD),
    **dict.fromkeys((".pptx", ".potx", ".ppsx", ".pptm", ".ppsm", ".potm"), SLIDES),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), SHEETS),
    **{".xlsb": XLSB, ".odt": ODT, ".ods": ODS, ".odp": ODP, ".epub": EPUB, ".zip": ZIP},
}
OF_TEXTS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".md", ".markdown"), MARKDOWN),
    **dict.fromkeys((".csv", ".tsv"), CSV),
    **dict.fromkeys((".eml", ".mht", ".mhtml"), MAIL),
    **{".json": JSON, ".mbox": MBOX, ".ics": CALENDAR, ".txt": TEXT, ".log": TEXT},
}
OF_OTHERS = {
    **{".pdf": PDF, ".rtf": RTF, ".doc": DOC, ".ppt": PPT, ".xls": XLS, ".msg": MSG},
    **dict.fromkeys((".jpg", ".jpeg"), JPEG),
    **dict.fromkeys((".tif", ".tiff"), TIFF),
    **{".png": PNG, ".gif": GIF, ".webp": WEBP, ".bmp": BMP},
}
_BY_ENDING = {**OF_ZIPS, **OF_TEXTS, **OF_OTHERS}

_FIRST_BYTES = (
    (b"PK\x03\x04", ZIP),
    (b"{\\rtf", RTF),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF8", GIF),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = {"EncryptedPackage": "", "WordDocument": DOC, "PowerPoint Document": PPT, "Workbook": XLS, "Book": XLS,
                "__substg1.0_": MSG}  # fmt: skip
_HEADER = re.compile(
    rb"(?i)(From|To|Cc|Subject|Date|Message-ID|MIME-Version|Received|Return-Path|Delivered-To|Reply-To|Content-Type"
    rb"|X-[\w-]+|DKIM-Signature|ARC-[\w-]+|Thread-[\w-]+|Authentication-Results|Received-SPF):"
)


def first_look(head: bytes) -> str:
    """Return the media type by a file's first bytes: TEXT for any text, "" if unknown."""
    if b"%PDF-" in head:
        return PDF
    for begins, kind in _FIRST_BYTES:
        if head.startswith(begins):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head.startswith(b"BM") and b"\0" in head:
        return BMP
    return TEXT if b"\0" not in head or utf_16(head) else ""


def utf_16(data: bytes) -> str:
    """Return the codec name of UTF-16 text, by its byte order mark or the positions of its zero bytes; else ""."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = data[:2048]
    half = len(sample) // 2
    if half < 4:
        return ""
    # In most scripts one byte of two is the same for all letters, and zero for spaces and line ends.
    for order, high, low in (
        ("utf-16-le", sample[1::2], sample[::2]),
        ("utf-16-be", sample[::2], sample[1::2]),
    ):
        most = max(set(high), key=high.count)
        if 0 in high and 0 not in low and (high.count(0) > half * 0.4 or high.count(most) > half * 0.5):
            return order
    return ""  # fmt: skip


def by_name(name: str, otherwise: str = UNKNOWN) -> str:
    """Return the media type by the file extension.

    Suffixes that browsers add, such as "(1)" or ".part", are ignored.
    """
    plain = re.sub(r"(\s*\(\d+\)|\.(part|crdownload|download|bak|tmp))+$", "", name.lower())
    return _BY_ENDING.get(PurePath(plain).suffix, otherwise or UNKNOWN)


def look_inside(data: bytes, guess: str) -> str:
    """Return a file's type by its content. ``guess``: the type by its name, which decides between types of text.

    Raises Unreadable if the file is encrypted or too large when unpacked.
    """
    seen = first_look(data[:1024])
    if data.startswith(_OLE):
        return _in_ole(data) or guess
    if seen == ZIP:
        return _in_zip(data, guess)
    if seen == "":
        return guess if not guess.startswith("text/") else UNKNOWN
    if seen != TEXT:
        return seen
    return _in_text(data, guess)


def _in_ole(data: bytes) -> str:
    for name, kind in _OLE_STREAMS.items():
        if name.encode("utf-16-le") in data:
            if not kind:
                raise Unreadable("encrypted")
            return kind
    return ""


def _in_zip(data: bytes, guess: str) -> str:
    try:
        with open_zip(data) as archive:
            names = set(archive.namelist())
            named = archive.read("mimetype").decode(errors="replace").strip() if "mimetype" in names else ""
    except (zipfile.BadZipFile, NotImplementedError):
        return guess if guess.startswith("application/") else ZIP
    for begins in (ODT, ODS, ODP):  # and their templates
        if named.startswith(begins):
            return begins
    inside = (
        ("word/", WORD), ("ppt/", SLIDES), ("xl/workbook.bin", XLSB), ("xl/", SHEETS),
        ("META-INF/container.xml", EPUB),
    )  # fmt: skip
    for begins, kind in inside:
        if any(name.startswith(begins) for name in names):
            return kind
    if "content.xml" in names:
        return guess if guess in (ODT, ODS, ODP) else ODT
    return guess if guess in (WORD, SLIDES, SHEETS, ODT, EPUB) else ZIP


def _in_text(data: bytes, guess: str) -> str:
    head = data[:2000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:15].upper() == b"BEGIN:VCALENDAR":
        return CALENDAR
    is_html = re.match(rb"(?is)(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype html|<html)", head)
    if is_html and guess in (MAIL, MBOX, JSON, CSV):
        return HTML
    if guess in (MARKDOWN, CSV, JSON, MAIL, MBOX, CALENDAR, WEB_PAGE) or (guess == HTML and head[:1] == b"<"):
        return guess
    if is_html:
        return HTML
    if re.match(rb"From \S+ .*\d\d:\d\d.*\d{4}", head):
        return MBOX
    headers = re.split(rb"\r?\n\r?\n", data[:20_000], maxsplit=1)[0]
    lines = [line for line in headers.splitlines() if line[:1] not in b" \t"]
    known = sum(bool(_HEADER.match(line)) for line in lines)
    if known >= 2 and known > len(lines) / 2:
        return MAIL
    return guess if guess == HTML else TEXT


def open_zip(data: bytes) -> zipfile.ZipFile:
    """Open an archive. Reading a file in it never yields more bytes than the archive declares.

    Raises Unreadable if it is encrypted, or has too many files or bytes.
    """
    archive = zipfile.ZipFile(io.BytesIO(data))
    files = archive.infolist()
    if len(files) > MOST_PACKED_FILES or sum(each.file_size for each in files) > MOST_UNPACKED:
        raise Unreadable("too_large_unpacked")
    if any(each.flag_bits & 1 for each in files):
        raise Unreadable("encrypted")
    return archive


# Results of reading a file: blocks of text, an error, and counts of parts that were left out.


class Block(NamedTuple):
    """Text under one heading and on one page."""

    text: str
    page: int = 0
    heading: str = ""


class Unreadable(Exception):
    """Raised for a file that cannot be read. ``args[0]``: a key of ``parent_process.SENTENCES``."""


Blocks = Iterator[Block]
READERS: dict[str, Callable[[bytes], Blocks]] = {}
"""Readers by media type, filled by ``reader``. Readers of mails and office files use it for files inside them."""
left_out: Counter[str] = Counter()
"""How many "pages", "pictures" and "files" of this process's one file were not read (``parent_process.LEFT_OUT``)."""
