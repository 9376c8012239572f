"""Every change to a workspace's documents: bring, rename, delete, restore. Editors write, every member reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import lock_as_editor, require
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb, record
from workspaces.documents import files
from workspaces.documents.kind import DOCUMENTS
from workspaces.documents.media import MARKDOWN, clean_title, media_type, seen
from workspaces.documents.reading_jobs import queue_embedding_of, queue_reading
from workspaces.index.words import index_words, unindex_words
from workspaces.models import (
    Document,
    DocumentStatus,
    PassageVector,
    Role,
    User,
    Workspace,
)
from workspaces.models.document import DOCUMENT, TITLE_LENGTH
from workspaces.quotas import require_room
from workspaces.throttles import spend


@dataclass(frozen=True)
class Brought:
    document: Document
    is_known: bool = False  # the workspace had this content already


def get_document(
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None = None,
    need: Role = Role.VIEWER,
    or_deleted: bool = False,
) -> Document:
    """With the person's ``role`` in its workspace. NotFound for strangers, Forbidden below ``need``."""
    found = Document.objects.visible_to(user).select_related("workspace", "created_by")
    if workspace is not None:
        found = found.filter(workspace=workspace)
    if not or_deleted:
        found = found.live()
    document = found.filter(public_id=public_id).first()
    if document is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    require(document.role, need)
    return document


def bring(
    workspace: Workspace,
    *,
    name: str,
    content: Iterable[bytes],
    title: str = "",
    by: User,
    now: datetime,
    spends: bool = True,
) -> Brought:
    """Keep a file, and have it read in the background. Editors only. ``content`` is read once.

    The same content twice is one document. ``spends``: it counts as an upload, of which one may make so many a minute;
    not what an import brings. Raises TooManyRequests, TooLarge, Invalid, QuotaReached, Unavailable.
    """
    shown = seen(title) or clean_title(name) or _("Untitled")
    if spends:
        spend("uploads", by, now=now)
    require_room("bytes", by)
    files.require_it_may_lie_there(workspace)
    stored = files.store(content)
    try:
        with transaction.atomic():
            lock_as_editor(workspace, by)
            require_room("bytes", by, stored.size)
            known = Document.objects.live().filter(workspace=workspace, sha256=stored.sha256).first()
            if known is None:
                made = Document.objects.create(
                    workspace=workspace,
                    title=shown,
                    file_name=stored.file_name,
                    media_type=media_type(name, stored.head),
                    size=stored.size,
                    sha256=stored.sha256,
                    created_by=by,
                    created_at=now,
                    updated_at=now,
                )
                record(Verb.DOCUMENT_ADDED, by=by, workspace=workspace, target=made.public_id)
                queue_reading(made)
                return Brought(get_document(by, made.public_id))
    except BaseException:
        files.remove(stored.file_name)
        raise
    files.remove(stored.file_name)
    return Brought(get_document(by, known.public_id), is_known=True)


def write(workspace: Workspace, *, title: str, text: str, by: User, now: datetime) -> Brought:
    """The same of a text that was typed or pasted: it is read as Markdown."""
    title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    brought = bring(workspace, name="text.md", title=title, content=[text.encode()], by=by, now=now)
    assert brought.is_known or brought.document.media_type == MARKDOWN
    return brought


def rename(document: Document, *, title: str, by: User, now: datetime) -> Document:
    document.title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    document.updated_at = now
    with transaction.atomic():
        lock_as_editor(document.workspace, by)
        document.save(update_fields=["title", "updated_at"])
        record(Verb.DOCUMENT_CHANGED, by=by, workspace=document.workspace, target=document.public_id)
    return document


def delete(document: Document, *, by: User, now: datetime) -> None:
    """Out of use: neither listed nor found, until it is restored. Twice does nothing more."""
    with transaction.atomic():
        lock_as_editor(document.workspace, by)
        locked = Document.objects.select_for_update().live().filter(pk=document.pk).first()
        if locked is None:
            return
        locked.deleted_at = locked.updated_at = now
        locked.save(update_fields=["deleted_at", "updated_at"])
        refs = list(locked.passages.values_list("pk", flat=True))
        unindex_words(DOCUMENTS, refs)
        locked.passages.update(deleted_at=now)
        PassageVector.objects.filter(kind=DOCUMENT, ref__in=refs).update(live=False)
        record(Verb.DOCUMENT_DELETED, by=by, workspace=document.workspace, target=document.public_id)


def restore(document: Document, *, by: User, now: datetime) -> Document:
    """Undo of ``delete``. Conflict when the same file was brought again meanwhile. Twice does nothing more."""
    with transaction.atomic():
        lock_as_editor(document.workspace, by)
        locked = Document.objects.select_for_update().exclude(deleted_at=None).filter(pk=document.pk).first()
        if locked is not None:
            locked.deleted_at, locked.updated_at = None, now
            try:
                with transaction.atomic():
                    locked.save(update_fields=["deleted_at", "updated_at"])
            except IntegrityError:
                raise Conflict(_("The same file has been brought again since.")) from None
            locked.passages.update(deleted_at=None)
            refs = list(locked.passages.order_by("number").values_list("pk", flat=True))
            index_words(DOCUMENTS, refs)
            PassageVector.objects.filter(kind=DOCUMENT, ref__in=refs).update(live=True)
            queue_embedding_of(refs)
            record(Verb.DOCUMENT_RESTORED, by=by, workspace=document.workspace, target=document.public_id)
            if locked.status == DocumentStatus.WAITING:
                queue_reading(locked)
    return get_document(by, document.public_id)


def read_again(document: Document, *, by: User | None, now: datetime) -> None:
    """Once more from the file, where it or pictures in it could not be read. Nothing where it is being read."""
    with transaction.atomic():
        if by is not None:
            lock_as_editor(document.workspace, by)
        if (
            Document.objects.not_quite_read()
            .filter(pk=document.pk)
            .update(status=DocumentStatus.WAITING, error="", updated_at=now)
        ):
            queue_reading(document)
