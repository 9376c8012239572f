"""The files of documents (``STORAGES["documents"]``): storing, downloading and detecting the type."""

import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden
from memoryhub.stored_files import Stored, StoredFiles, file_response
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
from workspaces.models import Document, DocumentVersion, Workspace
from workspaces.models.documents import TITLE_LENGTH

DOCUMENT_FILES = StoredFiles("documents", {Document: "workspace", DocumentVersion: "document__workspace"})
remove, sweep = DOCUMENT_FILES.remove, DOCUMENT_FILES.sweep


def require_storage_allowed(workspace: Workspace) -> None:
    """Raise Forbidden if the workspace is local-only and files are stored on another machine."""
    if workspace.local_only and not settings.FILES_STAY_HERE:
        raise Forbidden(
            _("Texts of this workspace never leave this machine, and files are stored on another one.")
        )


def store(content: Iterable[bytes]) -> Stored:
    """Store a file of at most DOCUMENT_MAX_BYTES, and return its name, size and hash.

    Raises TooLarge above that size, Invalid if it is empty, and Unavailable if the storage fails.
    """
    return DOCUMENT_FILES.store(content, settings.DOCUMENT_MAX_BYTES)


def open_document(document: Document | DocumentVersion) -> IO[Any]:
    """Open the stored file of a document or version.

    Raises NotFound if the file is missing, Unavailable if the storage fails.
    """
    return DOCUMENT_FILES.open(document.file_name)


def download(document: Document, of: Document | DocumentVersion | None = None) -> StreamingHttpResponse:
    """Return a document's file as a download. ``of``: the version to return, by default the newest."""
    file = of or document
    about = {"name": document.title, "content_type": file.media_type}
    return file_response(open_document(file), size=file.size, **about)


@contextmanager
def local_copy(document: Document) -> Iterator[Path]:
    """Yield the path of a temporary copy of the file, for a reader in another process."""
    with tempfile.NamedTemporaryFile(prefix="memoryhub-document-") as copy, open_document(document) as file:
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield Path(copy.name)


# Detection of a file's type by its first bytes, else by its file extension. The sender's type is not trusted.

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
    """Return the most likely media type of a file. ``head``: its first bytes.

    The process that reads the file corrects the type by its whole content.
    """
    seen, named = first_look(head), by_name(name)
    if seen == ZIP:
        return named if named in OF_ZIPS.values() else ZIP
    if seen == TEXT:
        looks_like_html = head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
        return named if named in OF_TEXTS.values() else HTML if looks_like_html else TEXT
    return seen or (named if named in OF_OTHERS.values() and not named.startswith("image/") else UNKNOWN)


def clean_title(name: str) -> str:
    """Return a title made from a file name: the last part of the path, without control characters."""
    return without_control_characters(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def without_control_characters(title: str) -> str:
    """Return a title without control characters, which could affect a terminal or the text direction."""
    normal = unicodedata.normalize("NFC", title)
    shown = "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in normal)
    return " ".join(shown.split())[:TITLE_LENGTH].strip()
