"""A restored backup forgets the documents that were forgotten since it was made."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from psycopg.rows import dict_row

from memoryhub.backup import databases
from workspaces.audit import Verb
from workspaces.documents.forgetting import remove
from workspaces.models import AuditEvent, Document

BATCH = 1_000
_EVENTS = """
SELECT at, verb, by_id, by_name, workspace_id, target, details, network, request_id
FROM workspaces_auditevent WHERE verb = %s ORDER BY id
"""


def forget_again(earlier: str, say: Callable[[str], None]) -> None:
    """Take over from the database ``earlier``, of the same installation, who forgot which document, and remove these.

    Django's connection is in the restored one. What the audit log no longer holds (``MEMORYHUB_AUDIT_DAYS``) is not
    known; the events go along, so that a restore after this one knows of them too.
    """
    with databases.connect(earlier) as connection:
        events = (
            connection.cursor(row_factory=dict_row).execute(_EVENTS, [Verb.DOCUMENT_FORGOTTEN]).fetchall()
        )
    of_this_kind = AuditEvent.objects.filter(verb=Verb.DOCUMENT_FORGOTTEN)
    known = set(of_this_kind.values_list("target", flat=True))
    newer = [AuditEvent(**event) for event in events if event["target"] not in known]
    AuditEvent.objects.bulk_create(newer, batch_size=BATCH)
    found = Document.objects.filter(public_id__in=[event.target for event in newer])
    number = len(found)
    for document in found:
        with transaction.atomic():
            remove(document)
    say(f"{len(newer)} documents were forgotten since: {number} of the backup removed")
