"""A document's newer file in the place of the one before, which is kept as an earlier version."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.actions.owned import note
from workspaces.audit import Verb
from workspaces.documents import files
from workspaces.documents.documents import Brought, get_document, lock_document
from workspaces.documents.media import CSV, ENDINGS, JSON, MARKDOWN, TEXT, media_type
from workspaces.documents.reading_jobs import queue_reading
from workspaces.models import Document, DocumentStatus, DocumentVersion, User
from workspaces.quotas import require_room
from workspaces.throttles import spend

TYPED = {TEXT, MARKDOWN, CSV, JSON}  # what people write by hand
CHUNK = 64 * 1024  # bytes
EDITABLE = 300_000  # bytes; a form has room for so much


class Stale(Conflict):
    code = "stale"
    default_message = later(
        "This has been changed since you opened it. Nothing is lost: look at both, then decide."
    )


def replace(
    document: Document,
    *,
    name: str,
    content: Iterable[bytes],
    by: User,
    now: datetime,
    seen: int | None = None,
) -> Brought:
    """Keep a newer file of it, and have that read; until then the older text is found. Editors only.

    The same content again changes nothing. ``seen``: the version that it may follow; None: any. Raises as
    ``documents.bring``, and Conflict where another document has it, or it is not as it was seen.
    """
    spend("uploads", by, now=now)
    require_room("bytes", by)
    files.require_it_may_lie_there(document.workspace)
    stored = files.store(content)
    try:
        with transaction.atomic():
            locked = lock_document(document, by)
            require_room("bytes", by, stored.size)
            if seen is not None and locked.version != seen:
                raise Stale
            if is_new := locked.sha256 != stored.sha256:
                _set_aside(locked)
                locked.file_name, locked.media_type = stored.file_name, media_type(name, stored.head)
                locked.size, locked.sha256, locked.version = stored.size, stored.sha256, locked.version + 1
                locked.version_by, locked.version_at, locked.updated_at = by, now, now
                locked.status, locked.error, locked.reading_since = DocumentStatus.WAITING, "", None
                locked.save()
                note(Verb.DOCUMENT_CHANGED, document, by)
                queue_reading(locked)
    except IntegrityError:
        files.remove(stored.file_name)
        raise Conflict(_("Another document of this workspace has the same content.")) from None
    except BaseException:
        files.remove(stored.file_name)
        raise
    if not is_new:
        files.remove(stored.file_name)
    return Brought(get_document(by, document.public_id), is_known=not is_new)


def rewrite(document: Document, *, text: str, by: User, now: datetime) -> Brought:
    """The same of a text that was typed or pasted: it is read as Markdown."""
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    return replace(document, name="text.md", content=[text.encode()], by=by, now=now)


def text_of(document: Document) -> str:
    """Return what can be edited as text. Raises Conflict for kinds that people do not write by hand."""
    if document.media_type in TYPED and document.size <= EDITABLE:
        with files.open_document(document) as file, suppress(UnicodeDecodeError):
            return str(file.read().decode("utf-8-sig"))
    raise Conflict(_("Only short texts can be edited here. Add a newer file of it instead."))


def edit(document: Document, *, text: str, seen: int, by: User, now: datetime) -> Brought:
    """A newer text in its place, of the same kind. Raises as ``replace``."""
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    return replace(document, name=_name(document), content=[text.encode()], by=by, now=now, seen=seen)


def bring_back(document: Document, number: int, *, by: User, now: datetime) -> Brought:
    """An earlier version once more, as the newest: what came between is kept."""
    earlier = get_version(document, number)
    with files.open_document(earlier) as file:
        return replace(
            document, name=_name(earlier), content=iter(partial(file.read, CHUNK), b""), by=by, now=now
        )


def _name(of: Document | DocumentVersion) -> str:
    """By which it is known again as what it is."""
    return f"text{ENDINGS.get(of.media_type, '')}"


def get_version(document: Document, number: int) -> Document | DocumentVersion:
    """The document itself where that is its newest."""
    if number == document.version:
        return document
    found = document.versions.filter(version=number).first()
    if found is None:
        raise NotFound(_("This document has no such version."))
    return found


def _set_aside(document: Document) -> None:
    DocumentVersion.objects.create(
        document=document,
        version=document.version,
        file_name=document.file_name,
        media_type=document.media_type,
        size=document.size,
        sha256=document.sha256,
        version_by_id=document.version_by_id or document.created_by_id,
        version_at=document.version_at or document.created_at,
    )
