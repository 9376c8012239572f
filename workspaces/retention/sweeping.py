"""Deletion by the rules, softly and a few rows at a time: until the purge it can be restored."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, QuerySet, Value

from workspaces.audit import RULES_HOLD_AFTER, Verb, record
from workspaces.models import Retention, Workspace
from workspaces.retention.kept import Kept, kinds
from workspaces.retention.rules import older

BATCH = 50  # rows locked at a time: nobody waits for more than these few deletes


def sweep(*, now: datetime, seconds: float) -> tuple[int, bool]:
    """Delete what was kept for its time, for about so many seconds; how many, and whether that was all of it.

    Nothing is looked for where nobody has set a rule: one query.
    """
    deadline, number = time.monotonic() + seconds, 0
    for kind in kinds():
        for rows in _overdue(kind, now):
            for removed in _batches(kind, rows, now):
                number += removed
                if time.monotonic() > deadline:
                    return number, False
    return number, True


def _overdue(kind: Kept, now: datetime) -> Iterator[QuerySet[Any]]:
    """By owners' rules, then by the operator's; each only where there are any."""
    held = Retention.objects.filter(**{f"{kind.name}__isnull": False}, updated_at__lt=now - RULES_HOLD_AFTER)
    if held.exists():
        days = F(f"workspace__retention__{kind.name}")
        kept = ExpressionWrapper(days * Value(timedelta(days=1)), output_field=DurationField())
        before = ExpressionWrapper(Value(now) - kept, output_field=DateTimeField())
        yield older(kind.rows().filter(kind.by_rule, workspace__retention__in=held), kind, before)
    if most := settings.RETENTION_MOST[kind.name]:
        yield older(kind.rows(), kind, now - timedelta(days=most))


def _batches(kind: Kept, rows: QuerySet[Any], now: datetime) -> Iterator[int]:
    """Yield counts of deleted batches. Locked rows are in use, and stay this time."""
    last = 0
    while True:
        with transaction.atomic():
            due = rows.filter(pk__gt=last).order_by("pk").select_related("workspace")
            batch = list(due.select_for_update(of=("self",), skip_locked=True)[:BATCH])
            for row in batch:
                kind.delete(row, now=now)
            _note(kind, batch)
        if batch:
            yield len(batch)
            last = batch[-1].pk
        if len(batch) < BATCH:
            return


def _note(kind: Kept, gone: list[Any]) -> None:
    """Record the count in the activity of each workspace; of personal things its owners learn nothing."""
    shared = kind.rows().model._base_manager.filter(kind.shared, pk__in=[row.pk for row in gone])
    counts = Counter(shared.order_by().values_list("workspace", flat=True))
    for workspace in Workspace.objects.filter(pk__in=counts).order_by("pk"):
        details = {kind.name: counts[workspace.pk]}
        record(Verb.RETENTION_APPLIED, by=None, workspace=workspace, details=details)
