"""Documents: add, rename, move, edit, delete, restore, forget.

Editors write and every member reads. Personal documents are visible to their owner only.
"""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import (
    get_owned,
    home,
    lock_as_editor,
    lock_owned,
    lock_places,
    record_in_audit_log,
    require_right_to_forget,
    require_right_to_move,
)
from workspaces.actions.purging import Counts, counted, purge_deleted, words_for
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb
from workspaces.documents import files, reading_jobs
from workspaces.documents.files import (
    CSV,
    ENDINGS,
    JSON,
    MARKDOWN,
    TEXT,
    clean_title,
    media_type,
    without_control_characters,
)
from workspaces.documents.reading_jobs import queue_embedding_of, queue_reading
from workspaces.documents.search import DOCUMENTS
from workspaces.index.hybrid_search import index_words, unindex_words
from workspaces.models import (
    Document,
    DocumentQuerySet,
    DocumentStatus,
    DocumentVersion,
    PassageVector,
    PassageWord,
    Role,
    User,
    Workspace,
)
from workspaces.models.documents import DOCUMENT, TITLE_LENGTH
from workspaces.quotas import require_room, spend


@dataclass(frozen=True)
class Brought:
    document: Document
    is_known: bool = False  # the content was already stored as this document


def get_document(
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None = None,
    or_deleted: bool = False,
) -> Document:
    """Return the document with this public id. The user's role is set as its ``role``. Drafts are not returned.

    ``workspace``: if given, the document must be visible there. ``or_deleted``: also return a soft-deleted one. Raises
    NotFound if the user may not see it.
    """
    rows = Document.objects.filter(drafted_at=None)
    document = get_owned(rows, user, public_id, workspace=workspace, need=Role.VIEWER, or_deleted=or_deleted)
    if document is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return document


def get_draft(user: User, public_id: str, *, workspace: Workspace | None = None) -> Document:
    """Return a draft: a file that this person attached to a message and has not sent yet.

    Raises NotFound for other people's drafts.
    """
    rows = Document.objects.drafts() if workspace is None else workspace.documents.drafts()
    draft = get_owned(rows, user, public_id, workspace=None, need=Role.VIEWER, or_deleted=True)
    if draft is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return draft


def add_document(
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
    """Store a file as a document and queue reading it. Editors only. ``content`` is iterated once.

    ``personal``: visible to ``by`` only, in all their workspaces. ``draft``: attached to a message that has not been
    sent; until then only ``by`` sees it. ``spends``: counts against the upload rate limit; False for imports.

    If a document with the same content exists, it is returned instead, with ``is_known``. It is read again if reading
    it had failed. Raises Conflict if it is personal but may not leave ``workspace``, Forbidden if files may not be
    stored, TooManyRequests, TooLarge, QuotaReached, and Unavailable if the storage fails.
    """
    here = workspace
    workspace, owner = home(workspace, by, personal=personal)
    shown = without_control_characters(title) or clean_title(name) or "Untitled"
    if spends:
        spend("uploads", by, now=now)
    require_room("bytes", by)
    files.require_storage_allowed(workspace)
    stored = files.store(content)
    try:
        with transaction.atomic():
            lock_as_editor(workspace, by)
            require_room("bytes", by, stored.size)
            known = (
                Document.objects.live().filter(workspace=workspace, owner=owner, sha256=stored.sha256).first()
            )
            if known is None:
                document = Document(workspace=workspace, owner=owner, title=shown)
                if draft:
                    document = Document(workspace=here, owner=by, title=shown, drafted_at=now, deleted_at=now)
                return Brought(_added(document, stored, media_type(name, stored.head), by=by, now=now))
    except BaseException:
        files.remove(stored.file_name)
        raise
    files.remove(stored.file_name)
    if known.status == DocumentStatus.FAILED:
        _read_again(known, shown, media_type(name, stored.head), by=by, now=now)
    return Brought(get_document(by, known.public_id), is_known=True)


def _read_again(document: Document, title: str, kind: str, *, by: User, now: datetime) -> None:
    """Queue a document that could not be read for reading again, with the title and type of the file uploaded now."""
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
    record_in_audit_log(Verb.DOCUMENT_ADDED, document, by)
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
    """Add a typed or pasted text as a Markdown document. Editors only.

    The arguments and errors are those of ``add_document``; a blank text or a wrong title raises Invalid too.
    """
    title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    options: dict[str, Any] = {"personal": personal, "draft": draft, "by": by, "now": now}
    brought = add_document(workspace, name="text.md", title=title, content=[text.encode()], **options)
    assert brought.is_known or brought.document.media_type == MARKDOWN
    return brought


def rename(document: Document, *, title: str, by: User, now: datetime) -> Document:
    title = clean_text("title", " ".join(title.split()), low=1, high=TITLE_LENGTH)
    with transaction.atomic():
        locked = lock_document(document, by)
        locked.title, locked.updated_at = title, now
        locked.save(update_fields=["title", "updated_at"])
        record_in_audit_log(Verb.DOCUMENT_CHANGED, locked, by)
    return get_document(by, document.public_id)


def lock_document(document: Document, by: User) -> Document:
    """Lock the live document until the commit, and return its current row.

    Raises NotFound if it was deleted or moved, Forbidden if ``by`` is no editor of its workspace.
    """
    locked = lock_owned(Document.objects.live(), document, by)
    if locked is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return locked


def move(document: Document, to: Workspace | None, *, by: User, now: datetime) -> Document:
    """Move a document with its versions to the workspace ``to``, or make it personal to ``by`` if that is None.

    The words of all its passages are indexed again; its vectors stay. Raises Forbidden if ``by`` may not take it from
    other members, NotFound if it was deleted or moved, and Conflict if the target has the same content or the document
    must stay on this machine.
    """
    place, owner = home(to or document.workspace, by, personal=to is None)
    require_right_to_move(document, place, owner, by)
    files.require_storage_allowed(place)
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
        record_in_audit_log(Verb.DOCUMENT_MOVED, document, by)
        if owner is None:
            record_in_audit_log(Verb.DOCUMENT_ADDED, locked, by)
    return get_document(by, document.public_id)


def delete(document: Document, *, by: User, now: datetime) -> None:
    """Soft-delete a document: it is not listed or found until it is restored. Idempotent."""
    with transaction.atomic():
        locked = lock_owned(Document.objects.live(), document, by)
        if locked is None:
            return
        soft_delete(locked, now=now)
        record_in_audit_log(Verb.DOCUMENT_DELETED, document, by)


def soft_delete(locked: Document, *, now: datetime) -> None:
    """Soft-delete a locked, live document. The caller checks the right to delete."""
    locked.deleted_at = locked.updated_at = now
    locked.save(update_fields=["deleted_at", "updated_at"])
    refs = list(locked.passages.values_list("pk", flat=True))
    unindex_words(DOCUMENTS, refs)
    locked.passages.update(deleted_at=now)
    PassageVector.objects.filter(place=locked.place, kind=DOCUMENT, ref__in=refs).update(live=False)


def restore(document: Document, *, by: User, now: datetime) -> Document:
    """Undo ``delete``. Idempotent. Raises Conflict if the same file was added again in between."""
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
            record_in_audit_log(Verb.DOCUMENT_RESTORED, document, by)
            if locked.status == DocumentStatus.WAITING:
                queue_reading(locked)
    return get_document(by, document.public_id)


def retry_reading(document: Document, *, by: User | None, now: datetime) -> None:
    """Queue the file for reading again if it, or a picture in it, could not be read.

    Does nothing while it is being read.
    """
    with transaction.atomic():
        if by is not None:
            lock_as_editor(document.workspace, by)
        unread = Document.objects.not_quite_read().filter(pk=document.pk)
        if unread.update(status=DocumentStatus.WAITING, error="", updated_at=now):
            queue_reading(document)


# Replacing a document's file. The previous file is kept as an earlier version.

TYPED = {TEXT, MARKDOWN, CSV, JSON}  # what people write by hand
CHUNK = 64 * 1024  # bytes
EDITABLE = 300_000  # bytes; the limit of the edit form


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
    """Store a newer file of a document and queue reading it. Editors only.

    Until it is read, search uses the previous text. The same content changes nothing, and the result has ``is_known``.
    ``seen``: the version number that the change is based on; None skips the check. Raises the errors of
    ``add_document``, Conflict if another document has the content, and Stale if ``seen`` is no longer the newest
    version.
    """
    spend("uploads", by, now=now)
    require_room("bytes", by)
    files.require_storage_allowed(document.workspace)
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
                record_in_audit_log(Verb.DOCUMENT_CHANGED, document, by)
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


def replace_text(document: Document, *, text: str, by: User, now: datetime) -> Brought:
    """Store a typed or pasted text as a document's newer version, in Markdown.

    Raises Invalid for a blank text, and the errors of ``replace``.
    """
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    return replace(document, name="text.md", content=[text.encode()], by=by, now=now)


def text_of(document: Document) -> str:
    """Return the document's text for editing. Raises Conflict if it is not plain text, or larger than ``EDITABLE``."""
    if document.media_type in TYPED and document.size <= EDITABLE:
        with files.open_document(document) as file, suppress(UnicodeDecodeError):
            return str(file.read().decode("utf-8-sig"))
    raise Conflict(_("Only short texts can be edited here. Add a newer file of it instead."))


def edit(document: Document, *, text: str, seen: int, by: User, now: datetime) -> Brought:
    """Store an edited text as a document's newer version, of the same type. ``seen``: the number of the edited version.

    Raises Invalid for a blank text, Stale if there is a newer version, and the errors of ``replace``.
    """
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    return replace(document, name=_name(document), content=[text.encode()], by=by, now=now, seen=seen)


def restore_version(document: Document, number: int, *, by: User, now: datetime) -> Brought:
    """Store an earlier version again as the newest one. The versions in between stay."""
    earlier = get_version(document, number)
    with files.open_document(earlier) as file:
        return replace(
            document, name=_name(earlier), content=iter(partial(file.read, CHUNK), b""), by=by, now=now
        )


def _name(of: Document | DocumentVersion) -> str:
    """Return a file name such as "text.md", with the extension of this version's media type, to store it again."""
    return f"text{ENDINGS.get(of.media_type, '')}"


def get_version(document: Document, number: int) -> Document | DocumentVersion:
    """Return a version, or the document itself for the newest. Raises NotFound if there is no such version."""
    if number == document.version:
        return document
    version = document.versions.filter(version=number).first()
    if version is None:
        raise NotFound(_("This document has no such version."))
    return version


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


# Drafts: files in a composer, visible to their person only until the message is sent, and removed if it never is.
#
# A draft is stored in the chat's workspace as a deleted document with an owner, so that no list, search, count or
# answer includes it.

KEPT = timedelta(days=1)  # for a draft whose message is not sent


def drafts_of(user: User, workspace: Workspace) -> DocumentQuerySet:
    """Return the files that this person attached to messages in the workspace and has not sent yet."""
    return Document.objects.visible_to(user).drafts().filter(workspace=workspace)


def publish(
    draft: Document, workspace: Workspace, owner: User | None, *, by: User, now: datetime
) -> Document:
    """Turn a draft into a document of the workspace when its message is sent. Call it in a transaction.

    ``owner``: the only person who may see it, or None for all members. If a document with the same content exists, the
    draft is removed and that document returned. Raises Forbidden if files of the workspace may not be stored or the
    person may not write, NotFound if the draft is gone.
    """
    files.require_storage_allowed(workspace)
    lock_places(by, draft.workspace, workspace)
    locked = _lock(draft, by)
    locked.workspace, locked.owner, locked.deleted_at, locked.drafted_at = workspace, owner, None, None
    locked.created_at = locked.updated_at = now
    try:
        with transaction.atomic():
            locked.save()
    except IntegrityError:
        same = Document.objects.live().get(workspace=workspace, owner=owner, sha256=locked.sha256)
        remove(draft)
        return same
    locked.passages.update(workspace=workspace, owner=owner, deleted_at=None)
    refs = list(locked.passages.order_by("number").values_list("pk", flat=True))
    index_words(DOCUMENTS, refs)
    queue_embedding_of(refs)
    record_in_audit_log(Verb.DOCUMENT_ADDED, locked, by)
    if locked.status == DocumentStatus.READY:  # a draft has no vectors
        locked.status = DocumentStatus.INDEXING
        locked.save(update_fields=["status"])
        reading_jobs.complete(locked)
    return locked


def discard(draft: Document, *, by: User) -> None:
    """Remove a draft with its file and passages. Raises NotFound if it was removed or sent."""
    with transaction.atomic():
        remove(_lock(draft, by))


def sweep(*, now: datetime, seconds: float) -> int:
    """Remove drafts older than ``KEPT``, for about ``seconds``. Return the number removed."""
    deadline, gone = time.monotonic() + seconds, 0
    for draft in Document.objects.drafts().filter(drafted_at__lt=now - KEPT).order_by("drafted_at"):
        if time.monotonic() > deadline:
            break
        with transaction.atomic():
            if Document.objects.drafts().filter(pk=draft.pk).select_for_update().exists():
                remove(draft)
                gone += 1
    return gone


def _lock(draft: Document, by: User) -> Document:
    locked = Document.objects.drafts().filter(pk=draft.pk, owner=by).select_for_update(of=("self",)).first()
    if locked is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return locked


def forget_document(document: Document, *, by: User) -> Counts:
    """Remove a live or deleted document permanently. Return the numbers of removed rows by kind.

    Raises Forbidden unless ``by`` is the editor who added it or an owner of its workspace, NotFound if it is gone
    already.
    """
    with transaction.atomic():
        locked = lock_owned(Document.objects.all(), document, by)
        if locked is None:
            raise NotFound(_("This document has since been deleted."))
        require_right_to_forget(locked, by)
        removed = remove(locked)
        words = {name.replace(" ", "_"): number for name, number in removed.items()}
        record_in_audit_log(Verb.DOCUMENT_FORGOTTEN, locked, by, **words)
    return removed


def purge(*, now: datetime, seconds: float) -> int:
    """Remove documents permanently that were deleted more than MEMORYHUB_PURGE_AFTER_DAYS ago, for about ``seconds``.

    Returns the number removed. Each has its own transaction, because it may have thousands of passages.
    """
    return purge_deleted(Document.objects.all(), _remove, "documents", now=now, seconds=seconds, most=1)


def _remove(keys: list[int]) -> None:
    for document in Document.objects.filter(pk__in=keys):
        remove(document)


def remove(document: Document) -> Counts:
    """Delete a document permanently, in the caller's transaction. Return the numbers of deleted rows by kind.

    Triggers delete vectors and words; files are removed after the commit. Citations are not counted, because their
    number would reveal what others asked.
    """
    locked = Document.objects.select_for_update(of=("self",)).filter(pk=document.pk).first()
    if locked is None:
        return Counter()
    refs = locked.passages.values("pk")
    beside: Counts = Counter()
    for model in (PassageVector, PassageWord):
        beside[words_for(model)] = model.objects.filter(
            kind=DOCUMENT, place=locked.place, ref__in=refs
        ).count()
    gone = {label: number for label, number in locked.delete()[1].items() if label.startswith("workspaces.")}
    return +(counted(gone) + beside)
