"""Users' files in Django's ``STORAGES`` (a local folder or an S3-compatible store), and downloads.

A file is stored before its row is committed, and deleted after the deletion of its row is committed. A crash may
therefore leave a file without a row, which ``sweep`` removes, but never a row without its file. If an S3 store is
configured later, files in the local folder are read from there until ``move_files`` or a restore moves them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import posixpath
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import models, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from memoryhub.environment import Environment
from memoryhub.errors import Invalid, NotFound, TooLarge, Unavailable, trouble_of
from memoryhub.llm.base import is_on_this_machine
from memoryhub.localization import file_size

IN_MEMORY = 1_000_000  # bytes up to which a file is read in memory, without a temporary file
S3_BACKEND, FOLDER_BACKEND = "storages.backends.s3.S3Storage", "memoryhub.stored_files.Folder"
# Folders, and their paths in a store below MEMORYHUB_S3_PREFIX. Documents came first, so they have no folder there.
PLACES: dict[str, tuple[str, ...]] = {"documents": (), "assets": ("assets",)}
SECONDS = {"connect_timeout": 5, "read_timeout": 30}


def files_folder() -> Path:
    """Return the folder of locally stored files: MEMORYHUB_FILES_DIR, else the data folder."""
    return Path(settings.FILES_DIR or settings.DATA_DIR)


class Folder(FileSystemStorage):
    """A storage below ``files_folder``, readable only by this user. A file gets its final name after a sync to disk."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            file_permissions_mode=0o600,
            directory_permissions_mode=0o700,
            allow_overwrite=True,  # only a draft of a killed process is overwritten, since names are random
        )
        self.folder = folder

    @property
    def location(self) -> Path:  # not cached, because tests change it
        return files_folder().absolute() / self.folder

    def _save(self, name: str, content: Any) -> str:
        path = self.location / name
        draft = path.with_name(f".{path.name}.part")
        try:
            super()._save(str(draft.relative_to(self.location)), content)  # type: ignore[misc]  # not in its stubs
            _sync(draft)
            draft.replace(path)
            _sync(path.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return name


def file_stores(env: Environment) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return the entries of ``STORAGES`` for users' files, and whether they stay here. Raises ImproperlyConfigured."""
    bucket, endpoint, here = env.text("S3_BUCKET"), env.url("S3_ENDPOINT_URL"), env.boolean("S3_LOCAL", None)
    values = {
        "region_name": env.text("S3_REGION"),
        "access_key": env.text("S3_ACCESS_KEY"),
        "secret_key": env.text("S3_SECRET_KEY"),
        "location": env.text("S3_PREFIX"),
    }
    if not bucket:
        if endpoint or here is not None or any(values.values()):
            raise ImproperlyConfigured(
                "MEMORYHUB_S3_BUCKET must name a bucket where another MEMORYHUB_S3_… is set."
            )
        return {name: {"BACKEND": FOLDER_BACKEND, "OPTIONS": {"folder": name}} for name in PLACES}, True
    if bool(values["access_key"]) != bool(values["secret_key"]):
        raise ImproperlyConfigured("MEMORYHUB_S3_ACCESS_KEY and MEMORYHUB_S3_SECRET_KEY go together.")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "endpoint_url": endpoint,
        **{name: value for name, value in values.items() if value},  # without keys, boto3 finds some itself
        "default_acl": None,
        "querystring_auth": False,
        "max_memory_size": IN_MEMORY,
    }
    on_this_machine = is_on_this_machine(endpoint or "") if here is None else here
    options["client_config"] = client_config(own_address=endpoint is not None, past_proxies=on_this_machine)
    stores = {
        name: {
            "BACKEND": S3_BACKEND,
            "OPTIONS": options | {"location": posixpath.join(values["location"] or "", *below)},
        }
        for name, below in PLACES.items()
    }
    return stores, on_this_machine


def client_config(*, own_address: bool, past_proxies: bool) -> Any:
    """Return boto3's client configuration. ``own_address``: not Amazon's store. ``past_proxies``: ignore proxies."""
    from botocore.config import Config  # slow to import, and only needed with such a store

    return Config(
        retries={"total_max_attempts": 3},
        s3={"addressing_style": "path"} if own_address else {},
        # Only Amazon's servers know the newer checksums. TLS and our own SHA-256 protect the data anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        signature_version="s3v4",
        proxies={} if past_proxies else None,  # None uses the environment's proxies
        **SECONDS,
    )


def _sync(path: Path) -> None:
    """Sync a file or folder to the disk. A new file's name is durable only once its folder is synced."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


logger = logging.getLogger(__name__)
ORPHAN_AGE = timedelta(days=1)  # a newer file without a row may belong to an unfinished upload
SPREAD = re.compile("[0-9a-f]{2}")


@dataclass(frozen=True)
class Stored:
    file_name: str
    size: int
    sha256: str
    head: bytes  # its first bytes


class StoredFiles:
    """The files in one entry of ``STORAGES``. ``workspace_lookups``: by model, the lookup of its workspace."""

    every: ClassVar[dict[str, StoredFiles]] = {}  # by name, which is also the folder in a backup

    def __init__(self, name: str, workspace_lookups: Mapping[type[models.Model], str]) -> None:
        self.name, self._workspace_lookups = name, workspace_lookups
        self.every[name] = self

    def store(self, content: Iterable[bytes], most: int) -> Stored:
        """Store ``content`` under a new random name. Raises TooLarge (above ``most`` bytes), Invalid or Unavailable."""
        size, digest, head = 0, hashlib.sha256(), b""
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            for chunk in content:
                size += len(chunk)
                if size > most:
                    raise too_long(most)
                head = (head + chunk[:HEAD])[:HEAD]
                digest.update(chunk)
                file.write(chunk)
            if not size:
                raise Invalid(fields={"file": _("Must not be empty.")})
            file.seek(0)
            name = secrets.token_hex(16)
            try:
                self._storage.save(key_of(name), File(file))
            except Exception as error:  # a storage's library may raise anything
                if full := trouble_of(error):
                    raise full from None
                logger.error("A file of %s could not be stored: %s", self.name, type(error).__name__)
                raise Unavailable(_("The server could not store the file. Try again later.")) from None
        return Stored(name, size, digest.hexdigest(), head)

    def open(self, file_name: str) -> IO[Any]:
        """Open a file. Raises NotFound if it is missing, Unavailable if the storage fails; both are logged."""
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
        """Open a file. Raises FileNotFoundError if it is missing, or any error of the storage's library."""
        for place in self._places():
            with suppress(FileNotFoundError):
                file = place.open(key_of(file_name))
                if file.file is not None:  # accessing it makes a remote store fetch the file now
                    return file
        raise FileNotFoundError(file_name)

    def remove(self, file_name: str) -> None:
        """Remove a file. Errors are logged, and ``sweep`` removes the file later."""
        for place in self._places():
            try:
                place.delete(key_of(file_name))
            except Exception as error:  # as above
                logger.error("The file %s could not be removed: %s", file_name, type(error).__name__)

    def forget(self, sender: Any, instance: Any, **kwargs: Any) -> None:
        """Remove the file of a deleted row after the commit. A receiver of Django's ``post_delete`` signal."""
        transaction.on_commit(partial(self.remove, instance.file_name))

    def sweep(self, *, now: datetime) -> int:
        """Remove files that a restore or a killed process left without a row, in one of 256 folders. Count them."""
        folder, removed = f"{int(now.timestamp() / 3600) % 256:02x}", 0  # another one each hour
        for place in self._places():
            names = _listed(place, folder)[1]
            known = self._names_with_row(names)
            for key in (f"{folder}/{name}" for name in names if name not in known):
                if now - place.get_modified_time(key) > ORPHAN_AGE:
                    place.delete(key)
                    removed += 1
        return removed

    def names(self) -> Iterator[str]:
        """Yield the name of every file, sorted. Raises any error of the storage's library."""
        yield from _names(self._places())

    def left(self) -> Iterator[tuple[str, bool]]:
        """Yield (name, whether ``move`` may move it) for each file in the local folder, if another store is set."""
        *stores, folder = self._places()
        for name in _names([folder]) if stores else ():
            yield name, not isinstance(self._place_of(name), FileSystemStorage)

    def move(self) -> Iterator[bool]:
        """Move the folder's files to the configured store until an error occurs, and yield whether each was moved."""
        folder = Folder(self.name)
        for name, goes in self.left():
            if goes:
                with suppress(FileNotFoundError), folder.open(key_of(name)) as content:  # deleted since
                    self.put_back(name, content)
                folder.delete(key_of(name))
                if not self._names_with_row([name]):  # its row was deleted during the move
                    self.remove(name)
            yield goes

    def put_back(self, file_name: str, content: IO[bytes]) -> Callable[[], object] | None:
        """Store a file from a backup under its name. Return a function that deletes it, or None if it exists."""
        place, key = self._place_of(file_name), key_of(file_name)
        if place.exists(key):
            return None
        place.save(key, File(content))
        return partial(place.delete, key)

    def are_of(self, workspace: models.Model) -> bool:
        """Return whether the workspace has any files. At most one query per model."""
        return any(
            model._base_manager.filter(**{place: workspace}).exists()
            for model, place in self._workspace_lookups.items()
        )

    @property
    def _storage(self) -> Storage:
        return storages[self.name]

    def _places(self) -> list[Storage]:
        """Return the storages that may contain files."""
        own = self._storage
        return [own] if isinstance(own, FileSystemStorage) else [own, Folder(self.name)]

    def _place_of(self, file_name: str) -> Storage:
        """Return the storage in which a file belongs: the local folder if its workspace is local-only or unknown."""
        if settings.FILES_STAY_HERE:
            return self._storage
        stays = [
            local_only
            for model, place in self._workspace_lookups.items()
            for local_only in model._base_manager.filter(file_name=file_name).values_list(
                f"{place}__local_only", flat=True
            )
        ]
        return self._storage if stays and not any(stays) else Folder(self.name)

    def _names_with_row(self, names: Iterable[str]) -> set[str]:
        return {
            name
            for model in self._workspace_lookups
            for name in model._base_manager.filter(file_name__in=names).values_list("file_name", flat=True)
        }


def key_of(file_name: str) -> str:
    """Return a file's path in its storage, which spreads files over 256 folders."""
    return f"{file_name[:2]}/{file_name}"


def _names(places: Sequence[Storage]) -> Iterator[str]:
    folders = {name for place in places for name in _listed(place, "")[0] if SPREAD.fullmatch(name)}
    for folder in sorted(folders):
        names = {name for place in places for name in _listed(place, folder)[1]}
        yield from sorted(name for name in names if name.startswith(folder))  # excludes drafts


def _listed(place: Storage, folder: str) -> tuple[list[str], list[str]]:
    """Return the names of subfolders and files of a folder. Both lists are empty if it does not exist."""
    try:
        return place.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [], []


ENVELOPE = 64 * 1024  # bytes of a form besides its files
HEAD = 512  # bytes from which a file's type is detected


def says_too_long(request: HttpRequest, most: int) -> bool:
    """Return whether Content-Length exceeds ``most`` bytes of files. Ask first: the CSRF check reads the whole form."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdecimal() and int(length) > most + ENVELOPE


def too_long(most: int) -> TooLarge:
    return TooLarge(_("A file may be at most %s.") % file_size(most))


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
    """Return a streaming response that browsers download and do not render as a page. An ``<img>`` may show it."""
    response = StreamingHttpResponse(_chunks(file), content_type=content_type, headers=SHUT)
    response["Content-Length"] = str(size)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


async def _chunks(file: IO[Any]) -> AsyncIterator[bytes]:
    """Yield the file's chunks asynchronously.

    Under ASGI, Django would read a synchronous iterator to its end before sending anything.
    """
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
