"""Every change to documents: bring, rename, move, delete, restore. Editors write, every member reads; of what is one
person's alone, only they do either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import lock_as_editor
from workspaces.actions.owned import get_owned, home, lock_owned, lock_places, note, require_right_to_move
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb
from workspaces.documents import files
from workspaces.documents.kind import DOCUMENTS
from workspaces.documents.media import MARKDOWN, clean_title, media_type, seen
from workspaces.documents.reading_jobs import queue_embedding_of, queue_reading
from workspaces.index.words import index_words, unindex_words
from workspaces.models import Document, DocumentStatus, PassageVector, Role, User, Workspace
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
    """As ``get_owned``. NotFound for strangers."""
    rows = Document.objects.filter(drafted_at=None)
    document = get_owned(rows, user, public_id, workspace=workspace, need=need, or_deleted=or_deleted)
    if document is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return document


def get_draft(user: User, public_id: str, *, workspace: Workspace | None = None) -> Document:
    """A file of this person's that waits in a composer of the workspace. NotFound for everyone else."""
    rows = Document.objects.drafts() if workspace is None else workspace.documents.drafts()
    found = get_owned(rows, user, public_id, workspace=None, need=Role.VIEWER, or_deleted=True)
    if found is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return found


def bring(
    workspace: Workspace,
    *,
    name: str,
    content: Iterable[bytes],
    title: str = "",
    personal: bool = False,
    draft: bool = False,
    by: User,
    now: datetime,
    spends: bool = True,
) -> Brought:
    """Keep a file, and have it read in the background. Editors only. ``content`` is read once.

    ``personal``: for ``by`` alone, in every workspace of theirs. ``draft``: for a message that has not been sent; until
    then it is not in use, and only ``by`` knows of it. The same content twice is one document, which is read again if
    it could not be read.
    ``spends``: it counts as an upload, of which one may make so many a minute;
    not what an import brings. Raises TooManyRequests, TooLarge, Invalid, QuotaReached, Unavailable, Conflict.
    """
    here = workspace
    workspace, owner = home(workspace, by, personal=personal)
    shown = seen(title) or clean_title(name) or "Untitled"
    if spends:
        spend("uploads", by, now=now)
    require_room("bytes", by)
    files.require_it_may_lie_there(workspace)
    stored = files.store(content)
    try:
        with transaction.atomic():
            lock_as_editor(workspace, by)
            require_room("bytes", by, stored.size)
            known = (
                Document.objects.live().filter(workspace=workspace, owner=owner, sha256=stored.sha256).first()
            )
            if known is None:
                made = Document(workspace=workspace, owner=owner, title=shown)
                if draft:
                    made = Document(workspace=here, owner=by, title=shown, drafted_at=now, deleted_at=now)
                return Brought(_added(made, stored, media_type(name, stored.head), by=by, now=now))
    except BaseException:
        files.remove(stored.file_name)
        raise
    files.remove(stored.file_name)
    if known.status == DocumentStatus.FAILED:
        _read_under(known, shown, media_type(name, stored.head), by=by, now=now)
    return Brought(get_document(by, known.public_id), is_known=True)


def _read_under(document: Document, title: str, kind: str, *, by: User, now: datetime) -> None:
    """Read what could not be read once more, under the name that it was brought by this time."""
    with transaction.atomic():
        locked = lock_document(document, by)
        if locked.status != DocumentStatus.FAILED:
            return
        locked.title, locked.media_type, locked.updated_at = title, kind, now
        locked.status, locked.error = DocumentStatus.WAITING, ""
        locked.save(update_fields=["title", "media_type", "status", "error", "updated_at"])
        queue_reading(locked)


def _added(document: Document, stored: files.Stored, kind: str, *, by: User, now: datetime) -> Document:
    document.file_name, document.size, document.sha256 = stored.file_name, stored.size, stored.sha256
    document.media_type, document.created_by = kind, by
    document.created_at = document.updated_at = now
    document.save()
    queue_reading(document)
    if document.is_draft:
        return get_draft(by, document.public_id)
    note(Verb.DOCUMENT_ADDED, document, by)
    return get_document(by, document.public_id)


def write(
    workspace: Workspace,
    *,
    title: str,
    text: str,
    personal: bool = False,
    draft: bool = False,
    by: User,
    now: datetime,
) -> Brought:
    """The same of a text that was typed or pasted: it is read as Markdown."""
    title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    given: dict[str, Any] = {"personal": personal, "draft": draft, "by": by, "now": now}
    brought = bring(workspace, name="text.md", title=title, content=[text.encode()], **given)
    assert brought.is_known or brought.document.media_type == MARKDOWN
    return brought


def rename(document: Document, *, title: str, by: User, now: datetime) -> Document:
    title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    with transaction.atomic():
        locked = lock_document(document, by)
        locked.title, locked.updated_at = title, now
        locked.save(update_fields=["title", "updated_at"])
        note(Verb.DOCUMENT_CHANGED, locked, by)
    return get_document(by, document.public_id)


def lock_document(document: Document, by: User) -> Document:
    """As ``lock_owned``, of those in use. NotFound where it has been deleted or moved since."""
    locked = lock_owned(Document.objects.live(), document, by)
    if locked is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return locked


def move(document: Document, to: Workspace | None, *, by: User, now: datetime) -> Document:
    """For everyone in this workspace, or, with None, for ``by`` alone, in every workspace of theirs; with its versions.

    Raises Forbidden, NotFound, and Conflict where the same content is there already or it stays on this machine. Costs
    what taking its words out and putting them in costs.
    """
    place, owner = home(to or document.workspace, by, personal=to is None)
    require_right_to_move(document, place, owner, by)
    files.require_it_may_lie_there(place)
    with transaction.atomic():
        lock_places(by, document.workspace, place)
        locked = lock_document(document, by)
        if (locked.workspace, locked.owner) == (place, owner):
            return get_document(by, document.public_id)
        refs = list(locked.passages.values_list("pk", flat=True))
        vectors = PassageVector.objects.filter(place=locked.place, kind=DOCUMENT, ref__in=refs)
        unindex_words(DOCUMENTS, refs)
        locked.workspace, locked.owner, locked.updated_at = place, owner, now
        try:
            with transaction.atomic():
                locked.save(update_fields=["workspace", "owner", "updated_at"])
        except IntegrityError:
            raise Conflict(_("The same content is there already, as another document.")) from None
        locked.passages.update(workspace=place, owner=owner)
        index_words(DOCUMENTS, refs)
        vectors.update(place=locked.place)
        note(Verb.DOCUMENT_MOVED, document, by)
        if owner is None:
            note(Verb.DOCUMENT_ADDED, locked, by)
    return get_document(by, document.public_id)


def delete(document: Document, *, by: User, now: datetime) -> None:
    """Out of use: neither listed nor found, until it is restored. Twice does nothing more."""
    with transaction.atomic():
        locked = lock_owned(Document.objects.live(), document, by)
        if locked is None:
            return
        take_out(locked, now=now)
        note(Verb.DOCUMENT_DELETED, document, by)


def take_out(locked: Document, *, now: datetime) -> None:
    """Delete a row that is locked and live. The caller knows that it may go."""
    locked.deleted_at = locked.updated_at = now
    locked.save(update_fields=["deleted_at", "updated_at"])
    refs = list(locked.passages.values_list("pk", flat=True))
    unindex_words(DOCUMENTS, refs)
    locked.passages.update(deleted_at=now)
    PassageVector.objects.filter(place=locked.place, kind=DOCUMENT, ref__in=refs).update(live=False)


def restore(document: Document, *, by: User, now: datetime) -> Document:
    """Undo ``delete``. Conflict if the same file was added again in between. Twice does nothing more."""
    with transaction.atomic():
        locked = lock_owned(Document.objects.exclude(deleted_at=None), document, by)
        if locked is not None:
            locked.deleted_at, locked.updated_at = None, now
            try:
                with transaction.atomic():
                    locked.save(update_fields=["deleted_at", "updated_at"])
            except IntegrityError:
                raise Conflict(_("The same file has since been added again.")) from None
            locked.passages.update(deleted_at=None)
            refs = list(locked.passages.order_by("number").values_list("pk", flat=True))
            index_words(DOCUMENTS, refs)
            PassageVector.objects.filter(place=locked.place, kind=DOCUMENT, ref__in=refs).update(live=True)
            queue_embedding_of(refs)
            note(Verb.DOCUMENT_RESTORED, document, by)
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
