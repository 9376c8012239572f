"""Uploaded files, stored in the data folder with access for the server's user only, until their import is finished."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from memoryhub.errors import TooLarge
from memoryhub.languages import grouped
from memoryhub.stored_files import files_folder

NAME = re.compile(r"imp_[A-Za-z0-9]{24}")


def folder_of(public_id: str) -> Path:
    assert NAME.fullmatch(public_id), "a public id of an import"
    return files_folder() / "imports" / public_id


def keep_upload(public_id: str, pieces: Iterable[bytes]) -> Path:
    """Save an upload, readable by the server's user only. Raises TooLarge above the limit and removes the file."""
    folder = folder_of(public_id)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    path, size = folder / "upload", 0
    try:
        path.touch(mode=0o600)
        with path.open("r+b") as file:
            for piece in pieces:
                size += len(piece)
                if size > settings.IMPORT_MAX_BYTES:
                    raise too_large()
                file.write(piece)
    except BaseException:
        remove(public_id)
        raise
    return path


def too_large() -> TooLarge:
    return TooLarge(
        _("A file to import may have at most %s MB.") % grouped(settings.IMPORT_MAX_BYTES // 2**20)
    )


def upload_of(public_id: str) -> Path:
    return folder_of(public_id) / "upload"


def lines_of(public_id: str) -> Path:
    """Return the file of lines created from another program's export."""
    return folder_of(public_id) / "lines"


def remove_upload(public_id: str) -> None:
    """Remove the upload of another program's export, once all lines are created from it."""
    upload_of(public_id).unlink(missing_ok=True)


def remove(public_id: str) -> None:
    shutil.rmtree(folder_of(public_id), ignore_errors=True)


def all_kept() -> Iterator[str]:
    """Yield the ids of imports that have files."""
    folder = files_folder() / "imports"
    if folder.is_dir():
        yield from sorted(each.name for each in folder.iterdir() if NAME.fullmatch(each.name))


def is_older(public_id: str, *, than: datetime) -> bool:
    try:
        return folder_of(public_id).stat().st_mtime < than.timestamp()
    except FileNotFoundError:
        return False


FORM = 65_536  # bytes of a form in addition to its file


def refuse_too_large(content_length: str | None) -> None:
    """Raise TooLarge if the Content-Length is above the limit. The received bytes are counted separately."""
    if content_length and content_length.isdigit() and int(content_length) > settings.IMPORT_MAX_BYTES + FORM:
        raise too_large()
