"""Files attached to memories: a row says what each is, the bytes lie in the data folder under a random name.

A file is whole and on the disk before its row is committed, and goes after the commit that removes its row. A crash in
between leaves a file without a row, never a row without its file; ``sweep`` removes such files.
"""

from __future__ import annotations

import codecs
import logging
import os
import random
import secrets
import time
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.judging.secret_filter import find_secret
from memories.models import Asset, Memory
from memories.models.asset import ASSET_NAME_LENGTH
from memories.writing.announcing import announce
from memoryhub.document_store import files_folder
from memoryhub.errors import Conflict, NotFound, SecretRefused, Unavailable
from memoryhub.http.downloads import file_response
from memoryhub.http.uploads import copied
from workspaces.audit import Verb, record
from workspaces.models import Role, User
from workspaces.quotas import require_room
from workspaces.throttles import spend

logger = logging.getLogger(__name__)
MOST_ASSETS = 20  # of one memory
ORPHAN_AGE = 3600  # seconds: a younger file without a row may be an upload that has not ended yet
SWEPT_AT_ONCE = 500
TEXT, UNKNOWN = "text/plain", "application/octet-stream"
# What the first bytes say. What the sender says is not believed: HTML and SVG are text here.
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
)


@dataclass(frozen=True)
class Stored:
    """A file that was written, and what it turned out to be."""

    file_name: str
    size: int
    sha256: str
    content_type: str


def get_asset(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Asset:
    """The asset of a live memory that this person may see, with that. NotFound, or Forbidden below ``need``."""
    asset = Asset.objects.select_related("memory").filter(public_id=public_id).first()
    nowhere = _("This file does not exist, or you do not have access to it.")
    if asset is None:
        raise NotFound(nowhere)
    try:
        asset.memory = get_memory(user, asset.memory.public_id, need=need)
    except NotFound:
        raise NotFound(nowhere) from None
    return asset


def attach(memory: Memory, *, name: str, content: Iterable[bytes], by: User | None, now: datetime) -> Asset:
    """Store a file with a memory. Reads ``content`` once, never all of it into memory.

    Raises TooManyRequests, TooLarge over MEMORYHUB_ASSET_MAX_BYTES, Invalid when it is empty, SecretRefused for its
    name, Conflict when the memory has MOST_ASSETS, QuotaReached,
    NotFound when it was deleted meanwhile, Unavailable when the disk
    takes no more.
    """
    name = clean_name(name)
    if find_secret(name):
        raise SecretRefused(fields={"file": _("has a name that looks like a credential")})
    if by is not None:
        spend("uploads", by, now=now)
    require_room("bytes", by)  # before anything is written; with its size once that is known
    stored = _write(content)
    try:
        with transaction.atomic():
            rows = Memory.objects.live(now).select_for_update(of=("self",))
            locked = rows.select_related("workspace", "owner").filter(pk=memory.pk).first()
            if locked is None:
                raise NotFound(_("This memory has since been forgotten."))
            require_room("bytes", by, stored.size)
            if locked.assets.count() >= MOST_ASSETS:
                raise Conflict(_("A memory can have at most %s files.") % MOST_ASSETS)
            facts = {"size": stored.size, "sha256": stored.sha256, "content_type": stored.content_type}
            made = Asset(memory=locked, name=name, file_name=stored.file_name, created_by=by, created_at=now)
            for field, value in facts.items():
                setattr(made, field, value)
            made.save(force_insert=True)
            _audit(Verb.DOCUMENT_ADDED, made, by)
            announce(locked, "attach")
    except (NotFound, Conflict):
        path_of(stored.file_name).unlink(
            missing_ok=True
        )  # after anything else the row may be there all the same
        raise
    return made


def remove(asset: Asset, *, by: User | None) -> None:
    """The row, and with its commit the file. Twice does nothing more."""
    with transaction.atomic():
        if asset.delete()[0]:
            _audit(Verb.DOCUMENT_DELETED, asset, by)
        announce(asset.memory, "detach")


def _audit(verb: Verb, asset: Asset, by: User | None) -> None:
    """A file of a personal memory concerns nobody else."""
    if by is not None:
        workspace = asset.memory.workspace if asset.memory.owner_id is None else None
        record(verb, by=by, workspace=workspace, target=asset.public_id)


def forget_file(sender: Any, instance: Asset, **kwargs: Any) -> None:
    """Django's ``post_delete``: whatever took the row along, its file goes once that is committed."""
    transaction.on_commit(partial(path_of(instance.file_name).unlink, missing_ok=True))


def open_file(asset: Asset) -> BinaryIO:
    try:
        return path_of(asset.file_name).open("rb")
    except FileNotFoundError:
        logger.error("The file of %s is missing in the data folder", asset.public_id)
        raise NotFound(
            _("The file is missing from the server. Tell your administrator: the server's log says more.")
        ) from None


def download(asset: Asset) -> StreamingHttpResponse:
    charset = "; charset=utf-8" if asset.content_type == TEXT else ""
    kind = f"{asset.content_type}{charset}"
    return file_response(open_file(asset), name=asset.name, size=asset.size, content_type=kind)


def path_of(file_name: str) -> Path:
    """Spread over 256 folders, so that none grows too long."""
    return _folder() / file_name[:2] / file_name


def clean_name(name: str) -> str:
    """A name for people: its last part, without signs that steer a terminal, a path or the reading direction.

    At most ASSET_NAME_LENGTH characters, of which its ending stays. It never names a file on the server.
    """
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rsplit("/", 1)[-1]
    seen = "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in last)
    kept = " ".join(seen.translate({ord(sign): "_" for sign in '<>:"|?*'}).split()).strip(". ")
    stem, dot, ending = kept.rpartition(".")
    if not stem or len(ending) > 20:
        stem, dot, ending = kept, "", ""
    return stem[: ASSET_NAME_LENGTH - len(dot + ending)].rstrip() + dot + ending or "file"


def sweep(*, now: float, seconds: float) -> int:
    """Remove files without a row, for about so many seconds; how many. Begins at another folder each time."""
    deadline, removed = time.monotonic() + seconds, 0
    folders = [entry for entry in _folder().iterdir() if entry.is_dir()] if _folder().is_dir() else []
    random.shuffle(folders)
    for folder in folders:
        if time.monotonic() > deadline:
            break
        old = [path for path in folder.iterdir() if now - path.stat().st_mtime > ORPHAN_AGE]
        for start in range(0, len(old), SWEPT_AT_ONCE):
            part = old[start : start + SWEPT_AT_ONCE]
            rows = Asset.objects.filter(file_name__in=[path.name for path in part])
            known = set(rows.values_list("file_name", flat=True))
            for path in part:
                if path.name not in known:
                    path.unlink(missing_ok=True)
                    removed += 1
    return removed


def _folder() -> Path:
    return files_folder() / "assets"


def _write(content: Iterable[bytes]) -> Stored:
    file_name = secrets.token_hex(16)
    path = path_of(file_name)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _folder().chmod(0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            stored = _copy(content, file, file_name)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        logger.error("A file could not be stored: %s", error.strerror)
        raise Unavailable(_("The server could not store the file. Try again later.")) from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return stored


def _copy(content: Iterable[bytes], file: BinaryIO, file_name: str) -> Stored:
    text = _TextProbe()
    size, sha256, head = copied(text.looking_at(content), file, settings.ASSET_MAX_BYTES)
    kind = next((kind for start, kind in SIGNATURES if head.startswith(start)), "")
    if not kind and head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "image/webp"
    return Stored(file_name, size, sha256, kind or (TEXT if text.is_text() else UNKNOWN))


class _TextProbe:
    """Whether all that it is fed is UTF-8 without NUL."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.failed = False

    def looking_at(self, content: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in content:
            self.feed(chunk)
            yield chunk

    def feed(self, chunk: bytes, final: bool = False) -> None:
        if self.failed:
            return
        try:
            self.failed = "\0" in self.decoder.decode(chunk, final)
        except UnicodeDecodeError:
            self.failed = True

    def is_text(self) -> bool:
        self.feed(b"", final=True)
        return not self.failed


def _sync_folder(folder: Path) -> None:
    """A new file's name is on the disk only once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
