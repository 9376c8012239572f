"""The bytes of documents, behind Django's storage (``STORAGES["documents"]``): a folder, unless the settings say else.

A file is whole and stored before its row is committed, and goes after the commit that removes its row.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages
from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden, NotFound, Unavailable
from memoryhub.http.downloads import file_response
from memoryhub.http.uploads import copied
from workspaces.models import Document, DocumentVersion, Workspace

logger = logging.getLogger(__name__)
ORPHAN_AGE = timedelta(days=1)
IN_MEMORY = 1_000_000  # bytes of an upload that need no file of their own on the way


@dataclass(frozen=True)
class Stored:
    file_name: str
    size: int
    sha256: str
    head: bytes


def require_it_may_lie_there(workspace: Workspace) -> None:
    """Forbidden where its texts never leave this machine, and files are stored elsewhere."""
    if workspace.local_only and not settings.DOCUMENTS_STAY_HERE:
        raise Forbidden(
            _("Texts of this workspace never leave this machine, and files are stored on another one.")
        )


def store(content: Iterable[bytes]) -> Stored:
    """Reads ``content`` once. Raises TooLarge, Invalid where it is empty, Unavailable where it cannot be stored."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        size, sha256, head = copied(content, file, settings.DOCUMENT_MAX_BYTES)
        file.seek(0)
        name = secrets.token_hex(16)
        try:
            storages["documents"].save(_key(name), File(file))
        except Exception as error:  # whatever a storage's own library raises
            logger.error("A document could not be stored: %s", type(error).__name__)
            raise Unavailable(_("The server could not store the file. Try again later.")) from None
    return Stored(name, size, sha256, head)


def open_document(document: Document | DocumentVersion) -> IO[Any]:
    try:
        file = storages["documents"].open(_key(document.file_name))
        if file.file is None:  # looked at, so that a store elsewhere gives it now
            raise FileNotFoundError
        return file
    except FileNotFoundError:
        logger.error("The file %s is missing", document.file_name)
        raise NotFound(
            _("The file is missing from the server. Tell your administrator: the server's log says more.")
        ) from None
    except Exception as error:  # as above
        logger.error("The file %s could not be had: %s", document.file_name, type(error).__name__)
        raise Unavailable(_("The server could not get the file. Try again later.")) from None


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


def remove(file_name: str) -> None:
    """What a store that does not answer keeps is removed by ``sweep``."""
    try:
        storages["documents"].delete(_key(file_name))
    except Exception as error:  # as above
        logger.error("The file %s could not be removed: %s", file_name, type(error).__name__)


def sweep(*, now: datetime) -> int:
    """Remove files without a row, of one of the 256 folders each hour; how many.

    A restore in the place of a newer database leaves such files, and a process killed between file and row.
    """
    storage, folder = storages["documents"], f"{int(now.timestamp() / 3600) % 256:02x}"
    try:
        names = storage.listdir(folder)[1]
    except FileNotFoundError:
        return 0
    known = {
        name
        for model in (Document, DocumentVersion)
        for name in model.objects.filter(file_name__in=names).values_list("file_name", flat=True)
    }
    old = [
        name
        for name in names
        if name not in known and now - storage.get_modified_time(_key(name)) > ORPHAN_AGE
    ]
    for name in old:
        remove(name)
    return len(old)


def forget_file(sender: Any, instance: Document | DocumentVersion, **kwargs: Any) -> None:
    """Django's ``post_delete``: whatever took the row along, its file goes once that is committed."""
    transaction.on_commit(partial(remove, instance.file_name))


def _key(file_name: str) -> str:
    """Spread over 256 folders, so that none grows too long."""
    return f"{file_name[:2]}/{file_name}"
