"""A run's memory and budget as they are kept: many processes work on one run, and each sees what the others did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import QuerySet

from chat.agents.budget import Budget, Limits, Used
from chat.agents.run_memory import AgentMemory, Head, MemoryEntry, MemoryKind
from chat.models.runs import Run, RunEntry, RunEvent, RunTemplate
from memoryhub import events


class Lost(Exception):
    """Somebody else has taken the step over, or its run is gone: what this process still does counts no more."""


class Stopped(Exception):
    """The run was stopped: the step is put back as it stands."""


def run_channel(run_id: str) -> str:
    return f"run:{run_id}"


def note(run: Run, kind: str, data: dict[str, Any], *, step: str = "", now: datetime) -> None:
    """Something that happened, for the log and whoever watches. Ids and numbers, no text of anybody's."""
    note_all(run, [RunEvent(run_id=run.pk, step=step, kind=kind, data=data, at=now)])


def note_all(run: Run, happened: Sequence[RunEvent]) -> None:
    with transaction.atomic(savepoint=False):
        RunEvent.objects.bulk_create(happened)
        for kind in dict.fromkeys(event.kind for event in happened):
            events.publish(run_channel(run.public_id), kind)


class StoredHead(NamedTuple):
    key: str
    kind: str
    value_bytes: int
    created_at: datetime
    source: str | None
    title: str | None
    description: str | None


@dataclass
class StoredMemory(AgentMemory):
    """The map of ``AgentMemory``, which listens to itself and keeps each entry, and looks before each reading what
    other processes have written. One small query a look.

    A failing listener hurts nobody, but an entry that could not be kept must: ``check`` raises what went wrong.
    """

    run_pk: int = 0
    may_write: Callable[[], None] = lambda: None  # raises Lost
    trouble: Exception | None = None
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subscribe(self._store)

    def get(self, key: str) -> MemoryEntry | None:
        rows = RunEntry.objects.filter(run_id=self.run_pk, key=key)
        self._take_in(rows.exclude(version=self._versions.get(key, 0)))
        return super().get(key)

    def snapshot(self) -> list[MemoryEntry]:
        rows = RunEntry.objects.filter(run_id=self.run_pk)
        stored = rows.values_list("key", "version")
        if changed := [key for key, version in stored if self._versions.get(key) != version]:
            self._take_in(rows.filter(key__in=changed))
        return super().snapshot()

    def newest(
        self, most: int, *, kind: Iterable[str] | None, key_prefix: str, sources: Iterable[str] | None
    ) -> tuple[int, Sequence[Head]]:
        """As the rows say, without a value: the newest along their index, the others only counted."""
        rows = RunEntry.objects.filter(run_id=self.run_pk, key__startswith=key_prefix)
        rows = rows if kind is None else rows.filter(kind__in=list(kind))
        rows = rows if sources is None else rows.filter(source__in=list(sources))
        heads = rows.order_by("-created_at", "-pk").values_list(
            "key", "kind", "size", "created_at", "source", "title", "description"
        )[:most]
        found = [StoredHead._make(head) for head in heads]
        return (len(found) if len(found) < most else rows.count()), found[::-1]

    def count(self) -> int:
        return RunEntry.objects.filter(run_id=self.run_pk).count()

    def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def _take_in(self, changed: QuerySet[RunEntry]) -> None:
        for row in changed:
            with self._lock:
                self._entries[row.key] = entry_of(row)
                self._versions[row.key] = row.version

    def _store(self, entry: MemoryEntry) -> None:
        try:
            with transaction.atomic():
                self.may_write()
                self._versions[entry.key] = _keep(self.run_pk, entry)
        except Exception as error:
            self.trouble = error
            raise


_KEEP = """
INSERT INTO chat_runentry (run_id, key, kind, "json", size, source, title, description, created_at, version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 1)
ON CONFLICT (run_id, key) DO UPDATE SET
    kind = excluded.kind, "json" = excluded."json", size = excluded.size, source = excluded.source,
    title = excluded.title, description = excluded.description, version = chat_runentry.version + 1
RETURNING version
"""


def _keep(run_pk: int, entry: MemoryEntry) -> int:
    """Insert or overwrite, whoever else does; the version that is stored now."""
    said = (entry.source, _storable(entry.title), _storable(entry.description))
    row = (run_pk, entry.key, str(entry.kind), entry.json, entry.value_bytes, *said, entry.created_at)
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, row)
        version: int = cursor.fetchone()[0]
    return version


def _storable(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "").encode(errors="replace").decode()


def entry_of(row: RunEntry) -> MemoryEntry:
    return MemoryEntry(
        row.key, MemoryKind(row.kind), row.json, row.created_at, row.source, row.title, row.description
    )


_SPEND = """
UPDATE chat_run SET rounds = rounds + %s, tokens_in = tokens_in + %s, tokens_out = tokens_out + %s WHERE id = %s
RETURNING status, deadline_at, rounds, tokens_in, tokens_out
"""


@dataclass
class StoredBudget(Budget):
    """Counted in the run's row, by all who work on it: what is spent here is counted there by ``keep``."""

    run_pk: int = 0
    now: Callable[[], datetime] = datetime.now
    _not_kept: Used = field(default_factory=Used)

    @classmethod
    def of(cls, run: Run, now: Callable[[], datetime]) -> StoredBudget:
        used = Used(run.rounds, run.tokens_in, run.tokens_out)
        return cls(limits_of(run), used, run.deadline_at <= now(), run_pk=run.pk, now=now)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        super().spend(tokens_in, tokens_out)
        self._not_kept = self._not_kept.more(tokens_in, tokens_out)

    def keep(self) -> str:
        """The run's status, with what was spent since the last time counted in its row. Raises Lost without one."""
        spent = self._not_kept
        if not spent.rounds:
            status = Run.objects.order_by().filter(pk=self.run_pk).values_list("status", flat=True).first()
            if status is None:
                raise Lost
            return status
        with connection.cursor() as cursor:
            cursor.execute(_SPEND, [spent.rounds, spent.tokens_in, spent.tokens_out, self.run_pk])
            found = cursor.fetchone()
        if found is None:
            raise Lost
        status, deadline, *used = found
        self.used, self.is_over_time, self._not_kept = Used(*used), deadline <= self.now(), Used()
        return str(status)


def limits_of(run: Run | RunTemplate) -> Limits:
    return Limits(**{name: run.limits[name] for name in asdict(Limits()) if name in run.limits})
