"""Forgetting documents and artifacts in a restored database that were forgotten after the backup was made."""

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
    """Remove documents and artifacts that people forgot after the backup, according to the ``newer`` database.

    Django's connection is to the restored database. Audit entries older than MEMORYHUB_AUDIT_DAYS are not known. The
    entries are copied, so that a later restore knows them too.
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
