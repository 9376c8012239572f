"""Checks of stored memories against the current rules for credentials: after a recall, and for all by ``scan_secrets``.

Each row stores the version of the rules by which it was checked, so unchanged rules cost no check, and an interrupted
scan continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction

from memories.forgetting.copies import drop_excerpts
from memories.judging.secret_filter import RULES
from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing.drafts import kind_in, without_secrets
from memories.writing.gate import delete_memory
from memoryhub.errors import NotFound

BATCH = 500
# Locked rows are skipped, and checked another time.
_STAMP = """
UPDATE memories_memory SET secret_rules = %s WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED)
"""


@dataclass
class Scan:
    """The progress of a scan. ``hidden`` holds (id, kind of credential), never a text."""

    total: int
    checked: int = 0
    hidden: list[tuple[str, str]] = field(default_factory=list)
    excerpts: list[str] = field(
        default_factory=list
    )  # ids of memories whose excerpt held a credential and was removed


def recheck(memories: Sequence[Memory], *, now: datetime) -> int:
    """Hide the memories that the current rules refuse, and mark the others as checked. Return the number hidden."""
    found = [memory for memory in memories if kind_in(memory)]
    for memory in found:
        _hide(memory, now)
    _stamp([memory.pk for memory in memories if memory not in found])
    return len(found)


def scan(*, now: datetime, check_all: bool = False, hide: bool = True) -> Generator[Scan, None, None]:
    """Check the live memories that the current rules have not checked, in batches, and yield the progress after each.

    ``check_all``: check the others too. Without ``hide`` nothing is changed or marked as checked.
    """
    rows = Memory.objects.filter(deleted_at=None)
    rows = rows if check_all else rows.exclude(secret_rules=RULES)
    progress, after = Scan(rows.count()), 0
    while batch := list(rows.filter(pk__gt=after).order_by("pk").defer("search")[:BATCH]):
        after = batch[-1].pk
        clean = []
        for memory in batch:
            if kind := kind_in(memory):
                progress.hidden.append((memory.public_id, kind))
                if hide:
                    _hide(memory, now)
                continue
            if without_secrets(memory.source_excerpt) != memory.source_excerpt:
                progress.excerpts.append(memory.public_id)
                if hide:
                    _drop_excerpt(memory)
            clean.append(memory.pk)
        if hide:
            _stamp(clean)
        progress.checked += len(batch)
        yield progress


def _hide(memory: Memory, now: datetime) -> None:
    try:
        delete_memory(memory, by=None, now=now, action=RevisionAction.HIDE)
    except NotFound:
        return  # forgotten in the meantime, so nothing is left to hide


def _drop_excerpt(memory: Memory) -> None:
    with transaction.atomic():
        Memory.objects.select_for_update(of=("self",)).filter(pk=memory.pk).first()
        drop_excerpts([memory.pk])


def _stamp(ids: Sequence[int]) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_STAMP, [RULES, list(ids)])
