"""Files attached to memories. A row describes each; the bytes are in ``STORAGES["assets"]`` under a random name."""

import codecs
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.judging.secret_filter import find_secret
from memories.models import Asset, Memory
from memories.models.topics import ASSET_NAME_LENGTH
from memories.writing.changing import announce, audit
from memoryhub.errors import Conflict, Forbidden, NotFound, SecretRefused
from memoryhub.stored_files import StoredFiles, file_response
from workspaces.audit import Verb
from workspaces.documents.files import require_storage_allowed
from workspaces.models import Role, User
from workspaces.quotas import require_room, spend

ASSET_FILES = StoredFiles("assets", {Asset: "memory__workspace"})
MOST_ASSETS = 20  # per memory
TEXT, UNKNOWN = "text/plain", "application/octet-stream"
# Content types by first bytes. The type that the client declares is ignored, so HTML and SVG count as text.
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
)


def get_asset(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Asset:
    """Return a file of a live memory, with the memory. Raises NotFound, and Forbidden for a role below ``need``."""
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
    """Store a file and attach it to a memory. ``content`` is read once, in chunks.

    Raises NotFound if the memory is deleted or expired, Invalid for an empty file, TooLarge for one of more than
    MEMORYHUB_ASSET_MAX_BYTES, SecretRefused if its name looks like a credential, Conflict if the memory already has
    MOST_ASSETS files, TooManyRequests, QuotaReached, Forbidden if data of the workspace must stay on this machine but
    files are stored elsewhere, and Unavailable if the storage fails.
    """
    name = clean_name(name)
    if find_secret(name):
        raise SecretRefused(fields={"file": _("has a name that looks like a credential")})
    if by is not None:
        spend("uploads", by, now=now)
    require_room("bytes", by)  # checked before writing; again with the size once it is known
    require_storage_allowed(memory.workspace)
    text = _TextProbe()
    stored = ASSET_FILES.store(text.looking_at(content), settings.ASSET_MAX_BYTES)
    try:
        with transaction.atomic():
            rows = Memory.objects.live(now).select_for_update(of=("self",))
            locked = rows.select_related("workspace", "owner").filter(pk=memory.pk).first()
            if locked is None:
                raise NotFound(_("This memory has since been forgotten."))
            require_storage_allowed(locked.workspace)
            require_room("bytes", by, stored.size)
            if locked.assets.count() >= MOST_ASSETS:
                raise Conflict(_("A memory can have at most %s files.") % MOST_ASSETS)
            asset = Asset(memory=locked, name=name, file_name=stored.file_name, created_by=by, created_at=now)
            asset.size, asset.sha256 = stored.size, stored.sha256
            asset.content_type = _kind_of(stored.head, is_text=text.is_text())
            asset.save(force_insert=True)
            audit(Verb.DOCUMENT_ADDED, locked, by, target=asset.public_id)
            announce(locked, "attach")
    except (NotFound, Conflict, Forbidden):
        ASSET_FILES.remove(stored.file_name)  # after other errors the row may have been committed
        raise
    return asset


def remove(asset: Asset, *, by: User | None) -> None:
    """Delete a file: the row now, and the stored bytes after the commit. A second call does nothing."""
    with transaction.atomic():
        if asset.delete()[0]:
            audit(Verb.DOCUMENT_DELETED, asset.memory, by, target=asset.public_id)
        announce(asset.memory, "detach")


def open_file(asset: Asset) -> IO[Any]:
    return ASSET_FILES.open(asset.file_name)


def download(asset: Asset) -> StreamingHttpResponse:
    charset = "; charset=utf-8" if asset.content_type == TEXT else ""
    kind = f"{asset.content_type}{charset}"
    return file_response(open_file(asset), name=asset.name, size=asset.size, content_type=kind)


def clean_name(name: str) -> str:
    """Return a file name for display: the last path component, safe and at most ASSET_NAME_LENGTH long."""
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rsplit("/", 1)[-1]
    seen = "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in last)
    file_name = " ".join(seen.translate({ord(sign): "_" for sign in '<>:"|?*'}).split()).strip(". ")
    stem, dot, ending = file_name.rpartition(".")
    if not stem or len(ending) > 20:
        stem, dot, ending = file_name, "", ""
    return stem[: ASSET_NAME_LENGTH - len(dot + ending)].rstrip() + dot + ending or "file"


def _kind_of(head: bytes, *, is_text: bool) -> str:
    kind = next((kind for start, kind in SIGNATURES if head.startswith(start)), "")
    if not kind and head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "image/webp"
    return kind or (TEXT if is_text else UNKNOWN)


class _TextProbe:
    """A check whether streamed bytes are UTF-8 text without NUL."""

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
