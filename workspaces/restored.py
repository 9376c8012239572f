"""A database that was restored or recovered forgets documents and artifacts forgotten after the moment it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from django.db import transaction
from psycopg.rows import dict_row

from workspaces.artifacts import remove as remove_artifacts
from workspaces.audit import Verb
from workspaces.documents import documents
from workspaces.models import Artifact, AuditEvent, Document

BATCH = 1_000
_EVENTS = """
SELECT at, verb, by_id, by_name, workspace_id, target, details, network, request_id
FROM workspaces_auditevent WHERE verb = %s ORDER BY id
"""


def forget_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Take over from a ``newer`` database, of the same installation, who forgot what, and remove that.

    Django's connection is in the restored one. What the audit log no longer holds (``MEMORYHUB_AUDIT_DAYS``) is not
    known; the events go along, so that a restore after this one knows of them too.
    """
    for verb in (Verb.DOCUMENT_FORGOTTEN, Verb.ARTIFACT_FORGOTTEN):
        events = newer.cursor(row_factory=dict_row).execute(_EVENTS, [verb]).fetchall()
        known = set(AuditEvent.objects.filter(verb=verb).values_list("target", flat=True))
        missed = [AuditEvent(**event) for event in events if event["target"] not in known]
        AuditEvent.objects.bulk_create(missed, batch_size=BATCH)
        ids = [event.target for event in missed]
        number = _documents(ids) if verb == Verb.DOCUMENT_FORGOTTEN else _artifacts(ids)
        what = verb.removesuffix("_forgotten")
        say(f"Forgotten since, {what}s: {len(missed)}; removed again: {number}")


def _documents(ids: list[str]) -> int:
    found = Document.objects.filter(public_id__in=ids)
    for document in found:
        with transaction.atomic():
            documents.remove(document)
    return len(found)


def _artifacts(ids: list[str]) -> int:
    found = list(Artifact.objects.filter(public_id__in=ids).values_list("pk", flat=True))
    remove_artifacts(found)
    return len(found)
