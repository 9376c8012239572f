"""Counts of refused memories by day, workspace, origin and reason, without the text."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial

from django.db import DatabaseError, connection, transaction

from memories.models import SourceType
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import DomainError, Invalid, SecretRefused, Sensitive
from memoryhub.monitoring import metrics

logger = logging.getLogger(__name__)
OTHER_SOURCE = "other"
_QUICK = "SET LOCAL lock_timeout = '250ms'"
_COUNT = """
INSERT INTO memories_refusal (day, workspace_id, source_type, kind, number) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (workspace_id, day, source_type, kind) DO UPDATE SET number = memories_refusal.number + excluded.number
"""


@contextmanager
def counted(workspace_id: int, source_type: str, now: datetime) -> Iterator[None]:
    """Count a refusal raised in this context, and reraise it."""
    try:
        yield
    except (Invalid, WasForgotten) as refusal:
        note(refusal, workspace_id, source_type, now)
        raise


def note(refusal: DomainError, workspace_id: int, source_type: str, now: datetime) -> None:
    note_all([refusal], workspace_id, source_type, now)


def note_all(refusals: Iterable[DomainError], workspace_id: int, source_type: str, now: datetime) -> None:
    """Count refusals. Never raises and waits at most 250 ms for a lock, because a count may be lost but not the
    caller's work.

    In a transaction the counting waits for the commit, so that no lock is held until then. Outside one it happens at
    once, so that the count survives a failing request.
    """
    kinds: Counter[str] = Counter()
    for refusal in refusals:
        metrics.count_refusal(refusal)
        kinds[kind_of(refusal)] += 1
    source = source_type if source_type in SourceType.values else OTHER_SOURCE  # labels may be any text
    day = now.astimezone(UTC).date()
    for kind, number in kinds.items():
        transaction.on_commit(partial(_count, day, workspace_id, source, kind, number), robust=True)


def kind_of(refusal: DomainError) -> str:
    """Return the kind of credential, or else the code of the error: "forgotten", "invalid" or "sensitive"."""
    if isinstance(refusal, SecretRefused) and not isinstance(refusal, Sensitive):
        return refusal.kind or refusal.code
    return refusal.code


def _count(day: date, workspace_id: int, source: str, kind: str, number: int) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_QUICK)
            cursor.execute(_COUNT, [day, workspace_id, source, kind, number])
    except DatabaseError as error:
        logger.warning("A refusal was not counted: %s", type(error).__name__)
