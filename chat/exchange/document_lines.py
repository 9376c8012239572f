"""Documents in an export, with their newest file, and back again: a line each, its bytes as base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from django.conf import settings

from chat.exchange.import_places import Places, text_of
from chat.exchange.lines import MAX_LINE, Record
from memoryhub.errors import DomainError, Invalid, NotFound
from memoryhub.kept import kept
from workspaces.documents import documents, files
from workspaces.documents.files import open_document
from workspaces.models import Document
from workspaces.models.documents import TITLE_LENGTH
from workspaces.quotas import QuotaReached

LARGEST = (MAX_LINE - 2**16) // 4 * 3  # bytes of a file that a line has room for
NO_FILE = kept("its file is missing from the export: it was too large or no longer there")
BROKEN_FILE = kept("its file is not the one that was exported")


def document_line(document: Document) -> dict[str, Any]:
    """With ``content`` null where the file is larger than a line holds, or missing. Costs its reading."""
    return {
        "type": "document",
        "id": document.public_id,
        "workspace": document.workspace.public_id,
        "personal": document.is_personal,
        "title": document.title,
        "media_type": document.media_type,
        "size": document.size,
        "sha256": document.sha256,
        "created_by": document.created_by.get_username() if document.created_by else None,
        "created_at": document.created_at.isoformat(),
        "content": _content(document) if document.size <= LARGEST else None,
    }


def _content(document: Document) -> str | None:
    try:
        with open_document(document) as file:
            return base64.b64encode(file.read()).decode()
    except NotFound:
        return None


def take_documents(records: list[Record], places: Places) -> None:
    """Brought as by the importer, to be read in the background; what a workspace has already is known.

    Raises QuotaReached: the import goes on when there is room.
    """
    for record, workspace in places.sort(records):
        try:
            title, kind = text_of(record.line, "title", TITLE_LENGTH), text_of(record.line, "media_type", 100)
            content = base64.b64decode(str(record.line.get("content") or ""), validate=True)
        except Invalid as error:
            record.refuse_for(error)
            continue
        except (binascii.Error, ValueError):
            content = b""
        sha256 = hashlib.sha256(content).hexdigest()
        personal = record.line.get("personal") is True
        at = {"owner": places.user} if personal else {"owner": None, "workspace": workspace.pk}
        same = Document.objects.live().filter(**at, sha256=sha256).first()
        if not content or len(content) > settings.DOCUMENT_MAX_BYTES:
            record.refuse(NO_FILE)
        elif sha256 != record.line.get("sha256"):
            record.refuse(BROKEN_FILE)
        elif same is not None:
            record.is_known(same.public_id)
        elif places.stores:
            name = f"file{files.ENDINGS.get(kind, '')}"
            try:
                brought = documents.bring(
                    places.home() if personal else workspace,
                    name=name,
                    content=[content],
                    title=title,
                    personal=personal,
                    by=places.user,
                    now=places.now,
                    spends=False,
                )
                record.became = brought.document.public_id
            except QuotaReached:
                raise
            except DomainError as error:
                record.refuse_for(error)
