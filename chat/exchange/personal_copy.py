"""Everything kept about a person in one ZIP, made while it is fetched.

Nothing of it lies on the server: what was forgotten for good, or what the person may no longer see, is in no file that
waits there, and no disk fills. Neither it nor any file in it is ever whole in memory.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from django.http import StreamingHttpResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from chat.exchange.document_lines import LARGEST
from chat.exchange.export import export, in_pieces
from chat.exchange.kept_about import kept_about
from memories.assets import open_file
from memories.models import Asset, Memory
from memoryhub.errors import NotFound
from memoryhub.files.stored_files import CHUNK, SHUT
from memoryhub.languages import speaking_to
from workspaces.audit import Verb
from workspaces.audit import record as audit
from workspaces.documents.files import open_document
from workspaces.models import Document, User

MEDIA_TYPE = "application/zip"
Part = tuple[str, Iterator[bytes]]


def copy_response(person: User, *, now: datetime) -> StreamingHttpResponse:
    """As a download. What they may no longer see, or is deleted meanwhile, is not in its next piece."""
    audit(Verb.EXPORTED, by=person, target=person.public_id)
    response = StreamingHttpResponse(in_pieces(_zipped(_parts(person, now))), content_type=MEDIA_TYPE)
    name = slugify(person.get_username())[:60] or "copy"
    response["Content-Disposition"] = f'attachment; filename="memoryhub-{name}-{now:%Y-%m-%d}.zip"'
    response["Cache-Control"] = "no-store"
    for header, value in SHUT.items():
        response[header] = value
    return response


def _parts(person: User, now: datetime) -> Iterator[Part]:
    yield "README.txt", iter([_readme(person)])
    yield "memoryhub.jsonl", export(person, now=now)
    yield "about-you.jsonl", (_line(each) for each in kept_about(person))
    mine = Asset.objects.filter(created_by=person, memory__in=Memory.objects.visible_to(person))
    for asset in mine.order_by("pk"):
        with suppress(NotFound):  # its file is missing, which the server's log says
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
    """Beginning with its id, so that no name leads out of the folder or is there twice."""
    return f"files/{public_id}-{name.replace('/', '_').replace(chr(92), '_')}"


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _read(file: IO[Any]) -> Iterator[bytes]:
    with file:
        while piece := file.read(CHUNK):
            yield piece


class _Sink(io.RawIOBase):
    """What zipfile writes, until it is taken away. It cannot be gone back in, so that sizes stand behind each file."""

    def __init__(self) -> None:
        self.held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.held += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self.held)
        self.held.clear()
        return taken


def _zipped(parts: Iterator[Part]) -> Iterator[bytes]:
    sink = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED) as archive:
        for name, pieces in parts:
            with archive.open(name, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    if taken := sink.take():
                        yield taken
    yield sink.take()
