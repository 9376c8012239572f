"""A run's memory and budget as they are kept: many processes work on one run, and each sees what the others did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from chat.agents.budget import Budget, Limits, Used
from chat.agents.run_memory import AgentMemory, Head, MemoryEntry, MemoryKind
from chat.models.runs import Run, RunEntry, RunEvent
from memoryhub import events


class Lost(Exception):
    """Somebody else has taken the step over, or its run is gone: what this process still does counts no more."""


class Stopped(Exception):
    """The run was stopped: the step is put back as it stands."""


def run_channel(run_id: str) -> str:
    return f"run:{run_id}"


def note(run: Run, kind: str, data: dict[str, Any], *, step: str = "", now: datetime) -> None:
    """Something that happened, for the log and whoever watches. Ids and numbers, no text of anybody's."""
    with transaction.atomic():
        RunEvent.objects.create(run_id=run.pk, step=step, kind=kind, data=data, at=now)
        events.publish(run_channel(run.public_id), kind)


@dataclass(frozen=True)
class StoredHead:
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
        self._catch_up(key)
        return super().get(key)

    def snapshot(self) -> list[MemoryEntry]:
        self._catch_up()
        return super().snapshot()

    def newest(
        self, most: int, *, kind: Iterable[str] | None, key_prefix: str, sources: Iterable[str] | None
    ) -> tuple[int, Sequence[Head]]:
        """As the rows say, without a value: two queries however many there are."""
        rows = RunEntry.objects.filter(run_id=self.run_pk, key__startswith=key_prefix)
        rows = rows if kind is None else rows.filter(kind__in=list(kind))
        rows = rows if sources is None else rows.filter(source__in=list(sources))
        heads = rows.order_by("-created_at", "-pk").values_list(
            "key", "kind", "size", "created_at", "source", "title", "description"
        )[:most]
        return rows.count(), [StoredHead(*head) for head in reversed(heads)]

    def count(self) -> int:
        return RunEntry.objects.filter(run_id=self.run_pk).count()

    def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def _catch_up(self, key: str | None = None) -> None:
        rows = RunEntry.objects.filter(run_id=self.run_pk)
        rows = rows if key is None else rows.filter(key=key)
        stored = dict(rows.values_list("key", "version"))
        changed = [name for name, version in stored.items() if self._versions.get(name) != version]
        if not changed:
            return
        for row in RunEntry.objects.filter(run_id=self.run_pk, key__in=changed):
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


def _keep(run_pk: int, entry: MemoryEntry) -> int:
    """Insert or overwrite; the version that is stored now."""
    values = {
        "kind": str(entry.kind),
        "json": entry.json,
        "size": entry.value_bytes,
        "source": entry.source,
        "title": _storable(entry.title),
        "description": _storable(entry.description),
    }
    row = RunEntry.objects.filter(run_id=run_pk, key=entry.key)
    if not row.update(**values, version=F("version") + 1):
        try:
            with transaction.atomic():
                RunEntry.objects.create(run_id=run_pk, key=entry.key, created_at=entry.created_at, **values)
            return 1
        except IntegrityError:  # another process was first
            row.update(**values, version=F("version") + 1)
    return row.values_list("version", flat=True)[0]


def _storable(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "").encode(errors="replace").decode()


def entry_of(row: RunEntry) -> MemoryEntry:
    return MemoryEntry(
        row.key, MemoryKind(row.kind), row.json, row.created_at, row.source, row.title, row.description
    )


@dataclass
class StoredBudget(Budget):
    """Counted in the run's row, by all who work on it."""

    run_pk: int = 0
    now: Callable[[], datetime] = datetime.now

    @classmethod
    def of(cls, run: Run, now: Callable[[], datetime]) -> StoredBudget:
        used = Used(run.rounds, run.tokens_in, run.tokens_out)
        return cls(limits_of(run), used, run.deadline_at <= now(), run_pk=run.pk, now=now)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        rows = Run.objects.filter(pk=self.run_pk)
        rows.update(
            rounds=F("rounds") + 1,
            tokens_in=F("tokens_in") + tokens_in,
            tokens_out=F("tokens_out") + tokens_out,
        )
        found = rows.values_list("rounds", "tokens_in", "tokens_out", "deadline_at").first()
        if found is None:
            raise Lost
        self.used, self.is_over_time = Used(*found[:3]), found[3] <= self.now()


def limits_of(run: Run) -> Limits:
    return Limits(**{name: run.limits[name] for name in asdict(Limits()) if name in run.limits})
