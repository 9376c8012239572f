"""Files in a composer: their person's alone until the message is sent, and removed if it never is.

A draft lies in the chat's workspace like a deleted document with an owner, so no list, search, count or answer has it.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memoryhub.errors import NotFound
from workspaces.actions.owned import lock_places, note
from workspaces.audit import Verb
from workspaces.documents import files, indexing
from workspaces.documents.forgetting import remove
from workspaces.documents.kind import DOCUMENTS
from workspaces.documents.reading_jobs import queue_embedding_of
from workspaces.index.words import index_words
from workspaces.models import Document, DocumentQuerySet, DocumentStatus, User, Workspace

KEPT = timedelta(days=1)  # a draft whose message was never sent


def drafts_of(user: User, workspace: Workspace) -> DocumentQuerySet:
    """The files that wait in this person's composers of the workspace."""
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
        indexing.complete(locked)
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
