"""Files of people in Django's ``STORAGES``: storing, checking, deleting, and sending them as downloads that no browser
runs.

A file is whole and stored before its row is committed, and goes after the commit that removes its row. A crash in
between leaves a file without a row, never a row without its file; ``sweep`` removes such files. Where a store is named,
what still lies in the folder is read there, until ``move_files`` or a restore puts it into the store.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import IO, Any, ClassVar

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import models, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from memoryhub.database.failures import trouble_of
from memoryhub.errors import Invalid, NotFound, TooLarge, Unavailable
from memoryhub.files.file_stores import IN_MEMORY, Folder
from memoryhub.languages import file_size

logger = logging.getLogger(__name__)
ORPHAN_AGE = timedelta(days=1)  # a younger file without a row may be an upload that has not ended yet
SPREAD = re.compile("[0-9a-f]{2}")
Rows = type[models.Model]


@dataclass(frozen=True)
class Stored:
    """A file that was written; ``head``: its first bytes."""

    file_name: str
    size: int
    sha256: str
    head: bytes


class StoredFiles:
    """The files of one storage. ``told_by``: models with a ``file_name``, and their lookup of the workspace."""

    every: ClassVar[dict[str, StoredFiles]] = {}  # by their names, which are folders in a backup, too

    def __init__(self, name: str, told_by: Mapping[Rows, str]) -> None:
        self.name, self._told_by = name, told_by
        self.every[name] = self

    def store(self, content: Iterable[bytes], most: int) -> Stored:
        """Store ``content``, reading it once. Raises TooLarge, Invalid if it is empty, Unavailable if it cannot be
        stored.
        """
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            size, sha256, head = copied(content, file, most)
            file.seek(0)
            name = secrets.token_hex(16)
            try:
                self._storage.save(key_of(name), File(file))
            except Exception as error:  # a storage's library may raise anything
                if full := trouble_of(error):
                    raise full from None
                logger.error("A file of %s could not be stored: %s", self.name, type(error).__name__)
                raise Unavailable(_("The server could not store the file. Try again later.")) from None
        return Stored(name, size, sha256, head)

    def open(self, file_name: str) -> IO[Any]:
        """Open a file. Raises NotFound, or Unavailable if the store does not answer; both are logged."""
        try:
            return self.opened(file_name)
        except FileNotFoundError:
            logger.error("The file %s of %s is missing", file_name, self.name)
            raise NotFound(
                _("The file is missing from the server. Tell your administrator: the server's log says more.")
            ) from None
        except Exception as error:  # as above
            logger.error("The file %s could not be had: %s", file_name, type(error).__name__)
            raise Unavailable(_("The server could not get the file. Try again later.")) from None

    def opened(self, file_name: str) -> IO[Any]:
        """Read it, raising FileNotFoundError and any error of the storage's library."""
        for place in self._places():
            try:
                file = place.open(key_of(file_name))
                if file.file is not None:  # looked at, so that a store elsewhere gives it now
                    return file
            except FileNotFoundError:
                continue
        raise FileNotFoundError(file_name)

    def remove(self, file_name: str) -> None:
        """Remove a file; one that an unreachable store keeps is removed by ``sweep``."""
        for place in self._places():
            try:
                place.delete(key_of(file_name))
            except Exception as error:  # as above
                logger.error("The file %s could not be removed: %s", file_name, type(error).__name__)

    def forget(self, sender: Any, instance: Any, **kwargs: Any) -> None:
        """Delete the file of a deleted row after the commit. A handler of Django's ``post_delete``."""
        transaction.on_commit(partial(self.remove, instance.file_name))

    def sweep(self, *, now: datetime) -> int:
        """Remove files without a row, of one of the 256 folders each hour; how many.

        A restore in the place of a newer database leaves such files, and a process killed between file and row.
        """
        folder, removed = f"{int(now.timestamp() / 3600) % 256:02x}", 0
        for place in self._places():
            names = _listed(place, folder)[1]
            known = self._told_of(names)
            for key in (f"{folder}/{name}" for name in names if name not in known):
                if now - place.get_modified_time(key) > ORPHAN_AGE:
                    place.delete(key)
                    removed += 1
        return removed

    def names(self) -> Iterator[str]:
        """Return every file's name, in order. Raises any error of the storage's library."""
        yield from _names(self._places())

    def left(self) -> Iterator[tuple[str, bool]]:
        """Yield files that are in the folder although the settings name a store; False for one that is not to move."""
        *stores, folder = self._places()
        for name in _names([folder]) if stores else ():
            yield name, not isinstance(self._place_of(name), FileSystemStorage)

    def move(self) -> Iterator[bool]:
        """Yield for each that is ``left`` whether it moved. Raises as ``names``; what moved before is in the store."""
        folder = Folder(self.name)
        for name, goes in self.left():
            if goes:
                with suppress(FileNotFoundError), folder.open(key_of(name)) as content:  # else deleted since
                    self.put_back(name, content)
                folder.delete(key_of(name))
                if not self._told_of([name]):  # forgotten in between, and removed from where it was
                    self.remove(name)
            yield goes

    def put_back(self, file_name: str, content: IO[bytes]) -> Callable[[], object] | None:
        """Put a backup's file back under its name, and return how to undo it. None if it is there: it never changes."""
        place, key = self._place_of(file_name), key_of(file_name)
        if place.exists(key):
            return None
        place.save(key, File(content))
        return partial(place.delete, key)

    def are_of(self, workspace: models.Model) -> bool:
        """Return whether the workspace has any files."""
        return any(
            model._base_manager.filter(**{place: workspace}).exists()
            for model, place in self._told_by.items()
        )

    @property
    def _storage(self) -> Storage:
        return storages[self.name]

    def _places(self) -> list[Storage]:
        """Return the storages in which files are looked for."""
        own = self._storage
        return [own] if isinstance(own, FileSystemStorage) else [own, Folder(self.name)]

    def _place_of(self, file_name: str) -> Storage:
        """The folder for what never leaves this machine, or is of nobody knows whom, where the store is another one."""
        if settings.FILES_STAY_HERE:
            return self._storage
        stays = [
            local_only
            for model, place in self._told_by.items()
            for local_only in model._base_manager.filter(file_name=file_name).values_list(
                f"{place}__local_only", flat=True
            )
        ]
        return self._storage if stays and not any(stays) else Folder(self.name)

    def _told_of(self, names: Iterable[str]) -> set[str]:
        return {
            name
            for model in self._told_by
            for name in model._base_manager.filter(file_name__in=names).values_list("file_name", flat=True)
        }


def key_of(file_name: str) -> str:
    """Return a file's key, spread over 256 folders."""
    return f"{file_name[:2]}/{file_name}"


def _names(places: Sequence[Storage]) -> Iterator[str]:
    folders = {name for place in places for name in _listed(place, "")[0] if SPREAD.fullmatch(name)}
    for folder in sorted(folders):
        found = {name for place in places for name in _listed(place, folder)[1]}
        yield from sorted(
            name for name in found if name.startswith(folder)
        )  # not a file that is still being written


def _listed(place: Storage, folder: str) -> tuple[list[str], list[str]]:
    """Return a folder's folders and files; none if it does not exist."""
    try:
        return place.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [], []


ENVELOPE = 64 * 1024  # bytes that a form may have beside its files
HEAD = 512  # bytes by which a file is known for what it is


def says_too_long(request: HttpRequest, most: int) -> bool:
    """Return whether Content-Length exceeds ``most`` bytes of files. Check it first: the CSRF check reads the whole
    form.
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdecimal() and int(length) > most + ENVELOPE


def too_long(most: int) -> TooLarge:
    return TooLarge(_("A file may be at most %s.") % file_size(most))


def copied(content: Iterable[bytes], file: IO[bytes], most: int) -> tuple[int, str, bytes]:
    """Copy the content, and return its size, SHA-256 and first bytes. Raises TooLarge, or Invalid if it is empty."""
    size, digest, head = 0, hashlib.sha256(), b""
    for chunk in content:
        size += len(chunk)
        if size > most:
            raise too_long(most)
        head = (head + chunk[:HEAD])[:HEAD]
        digest.update(chunk)
        file.write(chunk)
    if not size:
        raise Invalid(fields={"file": _("Must not be empty.")})
    return size, digest.hexdigest(), head


def require_fitting(request: HttpRequest, most: int) -> None:
    if says_too_long(request, most):
        raise too_long(most)


CHUNK = 64 * 1024
SHUT = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def file_response(file: IO[Any], *, name: str, size: int, content_type: str) -> StreamingHttpResponse:
    """Read while it is sent. A page may still show a picture of it by ``<img>``, where nothing in it runs."""
    response = StreamingHttpResponse(_chunks(file), content_type=content_type, headers=SHUT)
    response["Content-Length"] = str(size)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


async def _chunks(file: IO[Any]) -> AsyncIterator[bytes]:
    """Yield the file's chunks. Asynchronous, since under ASGI Django would read a plain iterator to its end first."""
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
