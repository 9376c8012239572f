"""The background job that reads a document, replaces its passages, and queues their embedding."""

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, LiteralString

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, F, Q
from django.utils import timezone
from django_q.tasks import async_task

from memoryhub.errors import NotFound
from memoryhub.llm.registry import get_embedder
from workspaces.documents import files
from workspaces.documents.passages import Passage, passages_of
from workspaces.documents.reading.parent_process import (
    SENTENCES,
    CouldNotRead,
    Picture,
    Read,
    longest,
    read_file,
    sentences_of,
)
from workspaces.documents.search import DOCUMENTS
from workspaces.index.embedding import queue_embedding
from workspaces.index.hybrid_search import index_words
from workspaces.index.reembedding import missing
from workspaces.models import (
    Document,
    DocumentPassage,
    DocumentPicture,
    DocumentStatus,
    EmbeddingModel,
    WebhookEvent,
    Workspace,
)
from workspaces.models.documents import READ
from workspaces.webhooks.hooks import emit

logger = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 5.0
STALE = timedelta(seconds=20)  # without a heartbeat, after which a reader is considered dead
LATE = timedelta(minutes=5)  # in the queue; then a document is queued again, because its job may be lost
# Counts documents that ``sweep`` should have queued again already: for monitoring.
STUCK: LiteralString = """
SELECT count(*) FROM workspaces_document WHERE (deleted_at IS NULL OR drafted_at IS NOT NULL) AND (
    (status = 'reading' AND coalesce(heartbeat_at, reading_since) < now() - interval '3 minutes')
    OR (status = 'waiting' AND updated_at < now() - interval '15 minutes'))
"""
EMBEDDED_AT_ONCE = 256  # passages per job: the first are searchable before the last are embedded
FAR = 10_000_000  # above the number of any passage


def read(document_id: int, *, now: datetime) -> str:
    """Read the file in a separate process and replace the document's passages. Return a summary for the job's log.

    Idempotent. If a reading has no recent heartbeat, because its job was killed, this job replaces it.
    """
    with transaction.atomic():
        document = Document.objects.select_for_update().to_read().filter(pk=document_id).first()
        if document is None or document.status in (*READ, DocumentStatus.FAILED):
            return "nothing to read"
        is_stale = document.heartbeat_at is None or document.heartbeat_at < now - STALE
        if document.status == DocumentStatus.READING and not is_stale:
            return "another job reads it"
        document.status, document.reading_since, document.heartbeat_at = DocumentStatus.READING, now, now
        document.save(update_fields=["status", "reading_since", "heartbeat_at"])
    began = time.monotonic()
    why, read, kind = "", Read([]), ""
    picture: Picture | None = None
    try:
        with _heartbeat(document_id, since=now), files.local_copy(document) as path:
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
        locked.status = DocumentStatus.FAILED if why and picture is None else DocumentStatus.INDEXING
        locked.error = str(SENTENCES[why]) if why else sentences_of(read.left_out)
        locked.media_type = kind or locked.media_type
        locked.reading_since, locked.heartbeat_at = None, None
        locked.seconds = time.monotonic() - began
        locked.pages = max((each.page for each in passages), default=0)
        locked.characters = sum(len(each.text) for each in passages)
        locked.passage_count = len(passages)
        locked.save()
        _put_passages(locked, passages)
        DocumentPicture.objects.filter(document=locked).delete()
        if picture is not None:
            shown = {"jpeg": picture.jpeg, "width": picture.width, "height": picture.height}
            DocumentPicture.objects.create(document=locked, **shown)
        complete(locked)
    return why or f"{len(passages)} passages"


def text_for_webhook(workspace: Workspace, public_id: str) -> Mapping[str, Any] | None:
    documents = Document.objects.live().filter(workspace=workspace, owner=None, public_id=public_id)
    return documents.values("title", "media_type", "pages").first()


def sweep(*, now: datetime) -> int:
    """Queue at most 100 documents again whose reading was killed or whose job may be lost. Return the number queued."""
    unread = Document.objects.to_read()
    left = Q(status=DocumentStatus.READING) & (Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE))
    waiting = Q(status=DocumentStatus.WAITING, updated_at__lt=now - LATE)
    late = waiting & (Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - LATE))
    with transaction.atomic():
        rows = unread.filter(left | late).select_for_update(of=("self",), skip_locked=True)
        documents = list(rows.order_by("updated_at")[:100])
        for document in documents:
            document.status, document.reading_since = DocumentStatus.WAITING, None
            document.heartbeat_at = now
            document.save(update_fields=["status", "reading_since", "heartbeat_at"])
            queue_reading(document)
    return len(documents)


@contextmanager
def _heartbeat(document_id: int, *, since: datetime) -> Iterator[None]:
    """Update the heartbeat every few seconds, from a thread with its own connection."""
    ended = threading.Event()

    def beat() -> None:
        try:
            while not ended.wait(HEARTBEAT_SECONDS):
                try:
                    reading = Document.objects.filter(pk=document_id, reading_since=since)
                    reading.update(heartbeat_at=timezone.now())
                except (DatabaseError, InterfaceError):
                    connection.close()  # a new one is opened for the next update
                    logger.warning("The heartbeat of a reading could not be stored")
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _put_passages(document: Document, passages: list[Passage]) -> None:
    """Replace the document's passages.

    A passage with the same text and surroundings keeps its row, and so its vector and words in the search index.
    """
    before: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for pk, *texts in document.passages.order_by("number").values_list("pk", "text", "around"):
        before[texts[0], texts[1]].append(pk)
    existing: list[DocumentPassage] = []
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
            existing.append(row)
        else:
            new.append(row)
    gone = [pk for rest in before.values() for pk in rest]
    document.passages.filter(pk__in=gone).delete()
    # Numbers are unique: avoid collisions while renumbering.
    document.passages.update(number=F("number") + FAR)
    DocumentPassage.objects.bulk_update(existing, ["number", "page", "heading", "begins"], batch_size=1000)
    created = DocumentPassage.objects.bulk_create(new, batch_size=1000)
    refs = [passage.pk for passage in created]
    index_words(DOCUMENTS, refs)
    if document.deleted_at is None:
        queue_embedding_of(refs)


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


# Completion. A document is searched by words until its last passage has a vector; then it is ready.


def with_shares(documents: Iterable[Document]) -> list[Document]:
    """Set ``by_meaning`` of each document: the share of its passages that have a vector, or None without an embedder.

    Two queries if any document is being indexed, else none.
    """
    rows = list(documents)
    indexing = [each for each in rows if each.status == DocumentStatus.INDEXING]
    left = _missing_vectors(indexing) if indexing else {}
    for each in rows:
        if each.status == DocumentStatus.INDEXING:
            each.by_meaning = 1 - left.get(each.pk, 0) / max(1, each.passage_count)
        elif each.status == DocumentStatus.READY:
            each.by_meaning = 1.0 if get_embedder() is not None else None
        else:
            each.by_meaning = 0.0
    return rows


def complete(document: Document) -> None:
    """Mark a document as ready if all its passages have a vector. The caller must have locked its row."""
    is_draft = document.deleted_at is not None  # not searched, so it has no vectors
    if document.status != DocumentStatus.INDEXING or (not is_draft and _missing_vectors([document])):
        return
    document.status = DocumentStatus.READY
    document.save(update_fields=["status"])
    if document.owner_id is None and document.deleted_at is None:
        emit(document.workspace_id, WebhookEvent.DOCUMENT_READY, [document.public_id], action="ready")


def complete_all(**which: object) -> None:
    """Mark the documents that the lookups ``which`` select as ready, if all their passages have a vector."""
    indexing = Document.objects.filter(status=DocumentStatus.INDEXING, **which)
    for pk in set(indexing.values_list("pk", flat=True)):
        with transaction.atomic():
            locked = Document.objects.select_for_update(of=("self",)).filter(pk=pk).first()
            if locked is not None:
                complete(locked)


def _missing_vectors(documents: list[Document]) -> dict[int, int]:
    """Return the number of passages that still need a vector, by document, without documents that need none."""
    if get_embedder() is None:
        return {}
    active = EmbeddingModel.objects.active()
    if active is None:  # nothing has been embedded yet
        return {each.pk: each.passage_count for each in documents if each.passage_count}
    rows = missing(active, DOCUMENTS, {each.place for each in documents}).filter(document__in=documents)
    return dict(rows.order_by().values_list("document").annotate(Count("pk")))
