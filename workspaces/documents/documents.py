"""Documents: add, rename, move, edit, delete, restore, forget. Editors write, every member reads; personal ones are
their owner's alone.
"""

from __future__ import annotations

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
    note,
    require_right_to_forget,
    require_right_to_move,
)
from workspaces.actions.removal import Counts, counted, purge_deleted, words_for
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb
from workspaces.documents import files, reading_jobs
from workspaces.documents.files import CSV, ENDINGS, JSON, MARKDOWN, TEXT, clean_title, media_type, seen
from workspaces.documents.passages import DOCUMENTS
from workspaces.documents.reading_jobs import queue_embedding_of, queue_reading
from workspaces.index.words import index_words, unindex_words
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
    """Return a file of this person's that waits in the composer of a chat. NotFound for everybody else."""
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
    """Add a typed or pasted text as a Markdown document. As ``bring``."""
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
    """As ``lock_owned``, for live documents. NotFound if it was deleted or moved since."""
    locked = lock_owned(Document.objects.live(), document, by)
    if locked is None:
        raise NotFound(_("This document does not exist, or you do not have access to it."))
    return locked


def move(document: Document, to: Workspace | None, *, by: User, now: datetime) -> Document:
    """Move a document with its versions to a workspace, or with None make it ``by``'s personal one.

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
    """Delete a document softly: it is neither listed nor found until it is restored. Idempotent."""
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
    """Read the file again, if it or pictures in it could not be read. Does nothing while it is being read."""
    with transaction.atomic():
        if by is not None:
            lock_as_editor(document.workspace, by)
        if (
            Document.objects.not_quite_read()
            .filter(pk=document.pk)
            .update(status=DocumentStatus.WAITING, error="", updated_at=now)
        ):
            queue_reading(document)


# A document's newer file in the place of the one before, which is kept as an earlier version.

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
    """Replace a document by a typed or pasted text, as Markdown. As ``replace``."""
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
    """Replace a document's text by an edited one of the same kind. Raises as ``replace``."""
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise Invalid(fields={"text": _("Must not be blank.")})
    return replace(document, name=_name(document), content=[text.encode()], by=by, now=now, seen=seen)


def bring_back(document: Document, number: int, *, by: User, now: datetime) -> Brought:
    """Make an earlier version the newest. Versions in between stay."""
    earlier = get_version(document, number)
    with files.open_document(earlier) as file:
        return replace(
            document, name=_name(earlier), content=iter(partial(file.read, CHUNK), b""), by=by, now=now
        )


def _name(of: Document | DocumentVersion) -> str:
    """Return a file name by which the version's type is detected again."""
    return f"text{ENDINGS.get(of.media_type, '')}"


def get_version(document: Document, number: int) -> Document | DocumentVersion:
    """Return a version; the document itself if it is the newest."""
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


# Files in a composer: their person's alone until the message is sent, and removed if it never is.
#
# A draft lies in the chat's workspace like a deleted document with an owner, so no list, search, count or answer has
# it.

KEPT = timedelta(days=1)  # a draft whose message was never sent


def drafts_of(user: User, workspace: Workspace) -> DocumentQuerySet:
    """Return this person's files in composers of the workspace."""
    return Document.objects.visible_to(user).drafts().filter(workspace=workspace)


def publish(
    draft: Document, workspace: Workspace, owner: User | None, *, by: User, now: datetime
) -> Document:
    """Make a draft a document of the workspace, or of ``owner`` alone, since its message is sent.

    Returns the document that has the same content already, if there is one. Part of the caller's transaction. Raises
    Forbidden, NotFound, and Conflict where files of the workspace may not lie.
    """
    files.require_it_may_lie_there(workspace)
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
    note(Verb.DOCUMENT_ADDED, locked, by)
    if locked.status == DocumentStatus.READY:  # a draft has no vectors
        locked.status = DocumentStatus.INDEXING
        locked.save(update_fields=["status"])
        reading_jobs.complete(locked)
    return locked


def discard(draft: Document, *, by: User) -> None:
    """Remove a draft with its file and passages. NotFound where it is gone or was sent."""
    with transaction.atomic():
        remove(_lock(draft, by))


def sweep(*, now: datetime, seconds: float) -> int:
    """Remove drafts whose message was never sent, for about so many seconds; returns how many."""
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
    """Remove it for good, deleted or not; what went, by kind. Raises Forbidden, or NotFound if it is gone already."""
    with transaction.atomic():
        locked = lock_owned(Document.objects.all(), document, by)
        if locked is None:
            raise NotFound(_("This document has since been forgotten."))
        require_right_to_forget(locked, by)
        removed = remove(locked)
        words = {name.replace(" ", "_"): number for name, number in removed.items()}
        note(Verb.DOCUMENT_FORGOTTEN, locked, by, **words)
    return removed


def purge(*, now: datetime, seconds: float) -> int:
    """As ``purge_deleted``, one at a time: a document may have thousands of passages."""
    return purge_deleted(Document.objects.all(), _remove, "documents", now=now, seconds=seconds, most=1)


def _remove(keys: list[int]) -> None:
    for document in Document.objects.filter(pk__in=keys):
        remove(document)


def remove(document: Document) -> Counts:
    """Delete a document for good, in the caller's transaction, and return the counts. Triggers delete vectors and
    words; files go after the commit. Citations are not counted: how often others asked is private.
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
