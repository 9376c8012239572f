"""A document becomes passages: the job that reads its file, what it leaves of those before, and what it queues."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django_q.tasks import async_task

from memoryhub.errors import NotFound
from workspaces.documents import files
from workspaces.documents.cutting import Passage, passages_of
from workspaces.documents.kind import DOCUMENTS
from workspaces.documents.reading.process import (
    SENTENCES,
    CouldNotRead,
    Picture,
    Read,
    longest,
    read_file,
    sentences_of,
)
from workspaces.index.vector_rows import queue_embedding
from workspaces.index.words import index_words
from workspaces.models import (
    Document,
    DocumentPassage,
    DocumentPicture,
    DocumentStatus,
    WebhookEvent,
    Workspace,
)
from workspaces.webhooks.outbox import emit

EMBEDDED_AT_ONCE = 256  # passages of one job: the first pages are found before the last are embedded
FAR = 10_000_000  # beyond the number of any passage


def read(document_id: int, *, now: datetime) -> str:
    """The job: read the file in a process of its own, and put its passages in place of those before. What came of it.

    May run twice, and again after it was killed.
    """
    with transaction.atomic():
        document = Document.objects.select_for_update().to_read().filter(pk=document_id).first()
        if document is None or document.status in (DocumentStatus.READY, DocumentStatus.FAILED):
            return "nothing to read"
        if document.reading_since is not None and document.reading_since > _stale(document, now):
            return "another job reads it"
        document.status, document.reading_since = DocumentStatus.READING, now
        document.save(update_fields=["status", "reading_since"])
    began = time.monotonic()
    why, read, kind = "", Read([]), ""
    picture: Picture | None = None
    try:
        with files.local_copy(document) as path:
            read = read_file(path, document.media_type)
            picture, kind = read.picture, read.kind
    except CouldNotRead as error:
        why, picture, kind = str(error), error.picture, error.kind
    except NotFound:
        why = "broken"
    passages = passages_of(read.blocks)
    with transaction.atomic():
        locked = Document.objects.select_for_update().filter(pk=document_id, reading_since=now).first()
        if locked is None:
            return "deleted meanwhile"
        locked.status = DocumentStatus.FAILED if why and picture is None else DocumentStatus.READY
        locked.error = str(SENTENCES[why]) if why else sentences_of(read.left_out)
        locked.media_type = kind or locked.media_type
        locked.reading_since, locked.seconds = None, time.monotonic() - began
        locked.pages = max((each.page for each in passages), default=0)
        locked.characters = sum(len(each.text) for each in passages)
        locked.passage_count = len(passages)
        locked.save()
        _put_passages(locked, passages)
        _put_picture(locked, picture)
        is_for_all = locked.owner_id is None and locked.deleted_at is None
        if is_for_all and locked.status == DocumentStatus.READY:
            emit(locked.workspace_id, WebhookEvent.DOCUMENT_READY, [locked.public_id], action="ready")
    return why or f"{len(passages)} passages"


def text_for_webhook(workspace: Workspace, public_id: str) -> Mapping[str, Any] | None:
    found = Document.objects.live().filter(workspace=workspace, owner=None, public_id=public_id)
    return found.values("title", "media_type", "pages").first()


def sweep(*, now: datetime) -> int:
    """Queue what waits for longer than a job takes: its job was lost, or killed while it read."""
    unread = Document.objects.to_read().filter(status__in=[DocumentStatus.WAITING, DocumentStatus.READING])
    oldest = unread.filter(updated_at__lt=now - timedelta(seconds=1.5 * longest(""))).order_by("updated_at")
    lost = [document for document in oldest[:100] if document.updated_at < _stale(document, now)]
    for document in lost:
        queue_reading(document)
    return len(lost)


def _stale(document: Document, now: datetime) -> datetime:
    """What began to be read before that is read no more."""
    return now - timedelta(seconds=1.5 * longest(document.media_type))


def _put_passages(document: Document, passages: list[Passage]) -> None:
    """In the place of those before. One that says the same amid the same keeps its row, its vector and its words."""
    before: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for pk, *said in document.passages.order_by("number").values_list("pk", "text", "around"):
        before[said[0], said[1]].append(pk)
    kept: list[DocumentPassage] = []
    new: list[DocumentPassage] = []
    for each in passages:
        row = DocumentPassage(
            document=document,
            workspace_id=document.workspace_id,
            owner_id=document.owner_id,
            number=each.number,
            page=each.page,
            heading=each.heading[:300],
            begins=each.begins,
            text=each.text,
            around=each.around,
            deleted_at=document.deleted_at,
        )
        if same := before[each.text, each.around]:
            row.pk = same.popleft()
            kept.append(row)
        else:
            new.append(row)
    gone = [pk for rest in before.values() for pk in rest]
    document.passages.filter(pk__in=gone).delete()
    document.passages.update(number=F("number") + FAR)  # a number belongs to one: none meets that of another
    DocumentPassage.objects.bulk_update(kept, ["number", "page", "heading", "begins"], batch_size=1000)
    made = DocumentPassage.objects.bulk_create(new, batch_size=1000)
    refs = [passage.pk for passage in made]
    index_words(DOCUMENTS, refs)
    if document.deleted_at is None:
        queue_embedding_of(refs)


def _put_picture(document: Document, picture: Picture | None) -> None:
    DocumentPicture.objects.filter(document=document).delete()
    if picture is not None:
        shown = {"jpeg": picture.jpeg, "width": picture.width, "height": picture.height}
        DocumentPicture.objects.create(document=document, **shown)


def queue_embedding_of(refs: list[int]) -> None:
    for start in range(0, len(refs), EMBEDDED_AT_ONCE):
        queue_embedding(DOCUMENTS, refs[start : start + EMBEDDED_AT_ONCE])


def queue_reading(document: Document) -> None:
    transaction.on_commit(
        lambda: async_task(
            "workspaces.tasks.read_document",
            document_id=document.pk,
            task_name="read a document",
            timeout=int(longest(document.media_type)) + 30,
        )
    )
