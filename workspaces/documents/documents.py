"""Every change to a workspace's documents: bring, rename, delete, restore, read. Editors write, every member reads."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import require
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb, record
from workspaces.documents import files
from workspaces.documents.cutting import Passage, passages_of
from workspaces.documents.kind import DOCUMENTS
from workspaces.documents.media import MARKDOWN, clean_title, media_type, seen
from workspaces.documents.reading.process import SENTENCES, CouldNotRead, read_file
from workspaces.index.embedding import queue_embedding
from workspaces.index.words import index_words, unindex_words
from workspaces.models import (
    Document,
    DocumentPassage,
    DocumentStatus,
    Membership,
    PassageVector,
    Role,
    User,
    Workspace,
)
from workspaces.models.document import DOCUMENT, TITLE_LENGTH
from workspaces.quotas import require_room
from workspaces.throttles import spend

EMBEDDED_AT_ONCE = 256  # passages of one job: the first pages are found before the last are embedded


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
    workspace: Workspace, *, name: str, content: Iterable[bytes], title: str = "", by: User, now: datetime
) -> Brought:
    """Keep a file, and have it read in the background. Editors only. ``content`` is read once.

    The same content twice is one document. Raises TooManyRequests, TooLarge, Invalid, QuotaReached, Unavailable.
    """
    shown = seen(title) or clean_title(name) or _("Untitled")
    spend("uploads", by, now=now)
    require_room("bytes", by)
    stored = files.store(content)
    try:
        with transaction.atomic():
            _lock_as_editor(workspace, by)
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
                _queue_reading(made)
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
        _lock_as_editor(document.workspace, by)
        document.save(update_fields=["title", "updated_at"])
        record(Verb.DOCUMENT_CHANGED, by=by, workspace=document.workspace, target=document.public_id)
    return document


def delete(document: Document, *, by: User, now: datetime) -> None:
    """Out of use: neither listed nor found, until it is restored. Twice does nothing more."""
    with transaction.atomic():
        _lock_as_editor(document.workspace, by)
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
        _lock_as_editor(document.workspace, by)
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
            _queue_embedding(refs)
            record(Verb.DOCUMENT_RESTORED, by=by, workspace=document.workspace, target=document.public_id)
            if locked.status == DocumentStatus.WAITING:
                _queue_reading(locked)
    return get_document(by, document.public_id)


def read_again(document: Document, *, by: User | None, now: datetime) -> None:
    """Once more from the file, after a failure. Part of nothing where it is being read."""
    with transaction.atomic():
        if by is not None:
            _lock_as_editor(document.workspace, by)
        failed = Document.objects.live().filter(pk=document.pk, status=DocumentStatus.FAILED)
        if failed.update(status=DocumentStatus.WAITING, error="", updated_at=now):
            _queue_reading(document)


def read(document_id: int, *, now: datetime) -> str:
    """The job: read the file in a process of its own, and put its passages in place of those before. What came of it.

    May run twice, and again after it was killed.
    """
    stale = now - timedelta(seconds=3 * settings.DOCUMENT_SECONDS)
    with transaction.atomic():
        document = Document.objects.select_for_update().live().filter(pk=document_id).first()
        if document is None or document.status in (DocumentStatus.READY, DocumentStatus.FAILED):
            return "nothing to read"
        if document.reading_since is not None and document.reading_since > stale:
            return "another job reads it"
        document.status, document.reading_since = DocumentStatus.READING, now
        document.save(update_fields=["status", "reading_since"])
    began = time.monotonic()
    why, passages = "", []
    try:
        with files.local_copy(document) as path:
            passages = passages_of(read_file(path, document.media_type))
    except CouldNotRead as error:
        why = str(error)
    except NotFound:
        why = "broken"
    with transaction.atomic():
        locked = Document.objects.select_for_update().filter(pk=document_id, reading_since=now).first()
        if locked is None:
            return "deleted meanwhile"
        locked.status = DocumentStatus.FAILED if why else DocumentStatus.READY
        locked.error = str(SENTENCES[why]) if why else ""
        locked.reading_since, locked.seconds = None, time.monotonic() - began
        locked.pages = max((each.page for each in passages), default=0)
        locked.characters = sum(len(each.text) for each in passages)
        locked.passage_count = len(passages)
        locked.save()
        _put_passages(locked, passages)
    return why or f"{len(passages)} passages"


def sweep(*, now: datetime) -> int:
    """Queue what waits for longer than a job takes: its job was lost, or killed while it read."""
    stale = now - timedelta(seconds=3 * settings.DOCUMENT_SECONDS)
    unread = Document.objects.live().filter(
        status__in=[DocumentStatus.WAITING, DocumentStatus.READING], updated_at__lt=stale
    )
    for document in unread[:100]:
        _queue_reading(document)
    return len(unread[:100])


def _put_passages(document: Document, passages: list[Passage]) -> None:
    document.passages.all().delete()
    made = DocumentPassage.objects.bulk_create(
        (
            DocumentPassage(
                document=document,
                workspace_id=document.workspace_id,
                number=each.number,
                page=each.page,
                heading=each.heading[:300],
                begins=each.begins,
                text=each.text,
                around=each.around,
                deleted_at=document.deleted_at,
            )
            for each in passages
        ),
        batch_size=1000,
    )
    refs = [passage.pk for passage in made]
    index_words(DOCUMENTS, refs)
    if document.deleted_at is None:
        _queue_embedding(refs)


def _queue_embedding(refs: list[int]) -> None:
    for start in range(0, len(refs), EMBEDDED_AT_ONCE):
        queue_embedding(DOCUMENTS, refs[start : start + EMBEDDED_AT_ONCE])


def _queue_reading(document: Document) -> None:
    transaction.on_commit(
        lambda: async_task(
            "workspaces.tasks.read_document", document_id=document.pk, task_name="read a document"
        )
    )


def _lock_as_editor(workspace: Workspace, by: User) -> None:
    """The right, asked under a lock: who is being removed, or deletes the workspace, waits or is waited for."""
    membership = Membership.objects.select_for_update().filter(workspace=workspace, user=by).first()
    if membership is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    require(membership.role, Role.EDITOR)
