"""Completion of a document: its words find it until the last passage has its vector, then it is ready."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import Count

from memoryhub.llm.registry import get_embedder
from workspaces.documents.kind import DOCUMENTS
from workspaces.index.reembedding import missing
from workspaces.models import Document, DocumentStatus, EmbeddingModel, WebhookEvent
from workspaces.webhooks.outbox import emit


def with_shares(documents: Iterable[Document]) -> list[Document]:
    """Set ``by_meaning`` of each, the share of its passages that is found by its meaning; None where nothing is, since
    there is no embedder. Two queries where vectors are being made.
    """
    found = list(documents)
    indexing = [each for each in found if each.status == DocumentStatus.INDEXING]
    left = _left(indexing) if indexing else {}
    for each in found:
        if each.status == DocumentStatus.INDEXING:
            each.by_meaning = 1 - left.get(each.pk, 0) / max(1, each.passage_count)
        elif each.status == DocumentStatus.READY:
            each.by_meaning = 1.0 if get_embedder() is not None else None
        else:
            each.by_meaning = 0.0
    return found


def complete(document: Document) -> None:
    """Say that it is ready, if no vector is missing. Part of a transaction that holds the document's row."""
    is_draft = document.deleted_at is not None  # nothing finds it, so it has no vectors
    if document.status != DocumentStatus.INDEXING or (not is_draft and _left([document])):
        return
    document.status = DocumentStatus.READY
    document.save(update_fields=["status"])
    if document.owner_id is None and document.deleted_at is None:
        emit(document.workspace_id, WebhookEvent.DOCUMENT_READY, [document.public_id], action="ready")


def complete_those_of(refs: Sequence[int]) -> None:
    """The same of the documents of these passages, which were just given vectors."""
    _complete_each(passages__in=refs)


def complete_all() -> None:
    """The same of all documents: where the embedder was changed or taken away, nothing else does it."""
    _complete_each()


def _complete_each(**which: object) -> None:
    indexing = Document.objects.filter(status=DocumentStatus.INDEXING, **which)
    for pk in set(indexing.values_list("pk", flat=True)):
        with transaction.atomic():
            locked = Document.objects.select_for_update(of=("self",)).filter(pk=pk).first()
            if locked is not None:
                complete(locked)


def _left(documents: list[Document]) -> dict[int, int]:
    """Count the passages of each that still need a vector; only documents that need one."""
    if get_embedder() is None:
        return {}
    active = EmbeddingModel.objects.active()
    if active is None:  # the first of all
        return {each.pk: each.passage_count for each in documents if each.passage_count}
    rows = missing(active, DOCUMENTS, {each.place for each in documents}).filter(document__in=documents)
    return dict(rows.order_by().values_list("document").annotate(Count("pk")))
