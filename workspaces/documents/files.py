"""The bytes of documents (``STORAGES["documents"]``), and which files may lie on another machine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden
from memoryhub.files.stored_files import Stored, StoredFiles
from memoryhub.http.files import file_response
from workspaces.models import Document, DocumentVersion, Workspace

DOCUMENT_FILES = StoredFiles("documents", {Document: "workspace", DocumentVersion: "document__workspace"})
remove, sweep = DOCUMENT_FILES.remove, DOCUMENT_FILES.sweep


def require_it_may_lie_there(workspace: Workspace) -> None:
    """Forbidden where its texts never leave this machine, and files are stored elsewhere."""
    if workspace.local_only and not settings.FILES_STAY_HERE:
        raise Forbidden(
            _("Texts of this workspace never leave this machine, and files are stored on another one.")
        )


def store(content: Iterable[bytes]) -> Stored:
    """As ``StoredFiles.store``."""
    return DOCUMENT_FILES.store(content, settings.DOCUMENT_MAX_BYTES)


def open_document(document: Document | DocumentVersion) -> IO[Any]:
    """As ``StoredFiles.open``."""
    return DOCUMENT_FILES.open(document.file_name)


def download(document: Document, of: Document | DocumentVersion | None = None) -> StreamingHttpResponse:
    """``of``: an earlier version of it."""
    file = of or document
    about = {"name": document.title, "content_type": file.media_type}
    return file_response(open_document(file), size=file.size, **about)


@contextmanager
def local_copy(document: Document) -> Iterator[Path]:
    """A file of its own for who reads it in another process."""
    with tempfile.NamedTemporaryFile(prefix="memoryhub-document-") as copy, open_document(document) as file:
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield Path(copy.name)
