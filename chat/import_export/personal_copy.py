"""Copy of all data about a user, as a ZIP that is created while it is downloaded.

It contains an export, account data, settings and counts. A test lists the tables that are left out, with reasons.
No copy is stored on the server, and no file of the ZIP is held in memory as a whole.
"""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from django.apps import apps
from django.db.models import BinaryField, Q, QuerySet
from django.http import StreamingHttpResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from chat.import_export.export import LARGEST, download_response, export
from memories.assets import open_file
from memories.models import Asset, Memory
from memoryhub.errors import NotFound
from memoryhub.localization import speaking_to
from memoryhub.stored_files import CHUNK, SHUT
from workspaces.audit import Verb
from workspaces.audit import record as audit
from workspaces.documents.files import open_document
from workspaces.models import AuditEvent, Document, User, Workspace

ROWS = 500
# For each table: the column of the user, and the path to the workspace, whose rows only members receive.
ABOUT = {
    "workspaces.User": ("pk", ""),
    "account.EmailAddress": ("user", ""),
    "socialaccount.SocialAccount": ("user", ""),
    "mfa.Authenticator": ("user", ""),
    "workspaces.SignIn": ("user", ""),
    "workspaces.Membership": ("user", ""),
    "workspaces.GroupGrant": ("user", ""),
    "workspaces.DirectoryGroup_members": ("user", ""),
    "workspaces.ApiKey": ("user", ""),
    "workspaces.Connection": ("owner", ""),
    "workspaces.Webhook": ("created_by", "workspace"),
    "workspaces.Invitation": ("created_by", "workspace"),
    "workspaces.ModelUse": ("user", ""),
    "workspaces.Budget": ("user", ""),
    "memories.MemoryNode": ("created_by", "workspace"),
    "memories.Memory_hidden_from_profile_of": ("user", "memory__workspace"),
    "memories.Clearing": ("by", "workspace"),
    "memories.RecallQuestion": ("owner", "workspace"),
    "chat.SavedPrompt": ("owner", ""),
    "chat.AnswerRating": ("user", "message__chat__workspace"),
    "chat.ChatMark": ("user", "chat__workspace"),
    "chat.ChatTag": ("user", "chat__workspace"),
    "chat.ShareLink": ("made_by", "chat__workspace"),
    "chat.Import": ("user", ""),
    "chat.Run": ("user", "workspace"),
    "chat.RunTemplate": ("user", "workspace"),
    "chat.PassingTurn": ("user", "workspace"),
}
# Credentials, their hashes and internal keys.
HIDDEN = {
    "password",
    "looks",
    "data",
    "session_key",
    "key_hash",
    "token_hash",
    "beginning",
    "sealed_key",
    "sealed_secret",
    "sealed_before",
    "file_name",
    "fingerprint",
    "conversation",
    "folded",
    "used_by",
    "message_ids",
    "memories_used",
    "places",
    "states",
    "board",
}
_EVENT = ("at", "verb", "by_id", "workspace_id", "target", "details", "network", "request_id")


def kept_about(person: User) -> Iterator[dict[str, Any]]:
    """Yield the rows about a user, each with its ``table``, without primary keys and secrets. Reads ROWS at a time."""
    for label, (column, place) in ABOUT.items():
        model = apps.get_model(label)
        names = _fields(model)
        rows = model._default_manager.filter(**{column: person.pk})
        if place:
            rows = rows.filter(**{f"{place}__in": Workspace.objects.visible_to(person).values("pk")})
            rows = rows.visible_to(person) if hasattr(rows, "visible_to") else rows
        yield from _each(label, rows, names)
    done = AuditEvent.objects.filter(Q(by_id=person.public_id) | Q(target=person.public_id))
    yield from _each("workspaces.AuditEvent", done, {name: name for name in _EVENT})


def _each(table: str, rows: QuerySet[Any], names: dict[str, str]) -> Iterator[dict[str, Any]]:
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *names)[:ROWS]):
        for _pk, *values in batch:
            yield {"table": table} | dict(zip(names.values(), values, strict=True))
        last = batch[-1][0]


def _fields(model: Any) -> dict[str, str]:
    """Map the lookup of each field to export, such as ``chat__public_id``, to its name in the export, such as ``chat``.

    A relation is exported as the public id of its target, or left out if the target has none.
    """
    lookups = {}
    for field in model._meta.concrete_fields:
        if field.name in HIDDEN or field.primary_key or isinstance(field, BinaryField):
            continue
        if not field.is_relation:
            lookups[field.name] = field.name
        elif any(each.name == "public_id" for each in field.related_model._meta.concrete_fields):
            lookups[f"{field.name}__public_id"] = field.name
    return lookups


MEDIA_TYPE = "application/zip"
Part = tuple[str, Iterator[bytes]]


def copy_response(person: User, *, now: datetime) -> StreamingHttpResponse:
    """Return the ZIP as a download. Rows that are deleted or become invisible are missing from later parts."""
    audit(Verb.EXPORTED, by=person, target=person.public_id)
    name = f"memoryhub-{slugify(person.get_username())[:60] or 'copy'}-{now:%Y-%m-%d}.zip"
    response = download_response(_zipped(_parts(person, now)), name=name, media_type=MEDIA_TYPE)
    for header, value in SHUT.items():
        response[header] = value
    return response


def _parts(person: User, now: datetime) -> Iterator[Part]:
    yield "README.txt", iter([_readme(person)])
    yield "memoryhub.jsonl", export(person, now=now)
    yield "about-you.jsonl", (_line(each) for each in kept_about(person))
    mine = Asset.objects.filter(created_by=person, memory__in=Memory.objects.visible_to(person))
    for asset in mine.order_by("pk"):
        with suppress(NotFound):  # the missing file is logged
            yield _named(asset.public_id, asset.name), _read(open_file(asset))
    large = Document.objects.visible_to(person).live().filter(created_by=person, size__gt=LARGEST)
    for document in large.order_by("pk"):
        with suppress(NotFound):
            yield _named(document.public_id, document.title), _read(open_document(document))


def _readme(person: User) -> bytes:
    with speaking_to(person):
        return _(
            "memoryhub.jsonl: what you may see in your workspaces. Any MemoryHub can import it.\n"
            "about-you.jsonl: what else is kept about you, each line with its kind: your account, sign-ins, "
            "keys (never their text), use of models, what you did.\n"
            "files/: files that you attached to memories, and documents that are too large for the other files.\n"
        ).encode()


def _named(public_id: str, name: str) -> str:
    """Return the path in the ZIP. It starts with the id, so that it is unique and cannot leave the folder."""
    return f"files/{public_id}-{name.replace('/', '_').replace(chr(92), '_')}"


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _read(file: IO[Any]) -> Iterator[bytes]:
    with file:
        while piece := file.read(CHUNK):
            yield piece


class _Sink(io.RawIOBase):
    """Output buffer for zipfile, emptied while it is sent. It cannot seek, so zipfile writes sizes after each file."""

    def __init__(self) -> None:
        self.held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.held += data
        return len(data)

    def take(self) -> bytes:
        chunk = bytes(self.held)
        self.held.clear()
        return chunk


def _zipped(parts: Iterator[Part]) -> Iterator[bytes]:
    sink = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED) as archive:
        for name, pieces in parts:
            with archive.open(name, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    if chunk := sink.take():
                        yield chunk
    yield sink.take()
