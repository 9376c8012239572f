"""Documents that go for good: their passages, vectors, words, files of every version, and what answers cite of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub.errors import NotFound
from workspaces.actions.owned import lock_owned, note, require_right_to_forget
from workspaces.actions.removal import Counts, counted, purge_deleted, words_for
from workspaces.audit import Verb
from workspaces.models import Document, PassageVector, PassageWord, User
from workspaces.models.documents import DOCUMENT


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
    """Part of the caller's transaction; nothing where it is gone already. Triggers take vectors and words along, and
    files go after the commit. Not counted is what answers cite: how often others asked is nobody's to know.
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
