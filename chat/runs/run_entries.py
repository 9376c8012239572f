"""Memory of a run: a map of keys to JSON values, through which its tasks, steps, teammates and tools share data."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from chat.models.runs import RunEntry
from memoryhub.database import queries

logger = logging.getLogger(__name__)


class MemoryKind(StrEnum):
    TASK_RESULT = "task_result"
    STEP_RESULT = "step_result"
    INPUT = "input"
    SHARED = "shared"


class memory_keys:
    """Functions that build keys of entries in a run's memory, such as ``step:<id>``."""

    @staticmethod
    def step(step_id: str) -> str:
        return f"step:{step_id}"

    @staticmethod
    def task(task_id: str) -> str:
        return f"task:{task_id}"

    @staticmethod
    def input(name: str) -> str:
        return f"input:{name}"

    @staticmethod
    def shared(name: str) -> str:
        """Return the key of a shared entry. An existing prefix is not repeated."""
        return f"shared:{name.removeprefix('shared:')}"


@dataclass(frozen=True)
class MemoryEntry:
    """An entry of the memory."""

    key: str
    kind: MemoryKind
    json: str  # the value as JSON text
    created_at: datetime
    source: str | None = None  # the id of the step, task or node that wrote it
    title: str | None = None
    description: str | None = None

    @property
    def value(self) -> Any:
        return json.loads(self.json)

    @property
    def value_bytes(self) -> int:
        return len(self.json.encode())

    def as_json(self) -> dict[str, Any]:
        """Return the entry as JSON for the API."""
        return {
            "key": self.key,
            "kind": str(self.kind),
            "value": self.value,
            **{name: text for name in ("source", "title", "description") if (text := getattr(self, name))},
            "createdAt": int(self.created_at.timestamp() * 1000),
        }


class StoredHead(NamedTuple):
    """An entry of the store as lists show it: the columns of its row without the value, which may be large."""

    key: str
    kind: str
    value_bytes: int
    created_at: datetime
    source: str | None
    title: str | None
    description: str | None


Head = MemoryEntry | StoredHead
Listener = Callable[[MemoryEntry], None]


def as_json_text(value: object) -> str:
    """Return the value as JSON text. Raises TypeError or ValueError if it is not JSON. Lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode()


@dataclass
class RunEntries:
    """The key-value store that the steps of a run share. Each call is atomic; listeners are called after it."""

    now: Callable[[], datetime] = timezone.now
    _entries: dict[str, MemoryEntry] = field(default_factory=dict)
    _listeners: list[Listener] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def set(self, key: str, kind: MemoryKind, value: object, **metadata: str | None) -> MemoryEntry:
        """Store a value and return its entry. If the key exists, its value is replaced and ``created_at`` stays."""
        return self._keep(MemoryEntry(key, MemoryKind(kind), as_json_text(value), self.now(), **metadata))

    def set_if_absent(self, key: str, kind: MemoryKind, value: object, **metadata: str | None) -> MemoryEntry:
        """Store a value unless the key exists. Return the key's entry, new or existing."""
        entry = MemoryEntry(key, MemoryKind(kind), as_json_text(value), self.now(), **metadata)
        return self._keep(entry, overwrites=False)

    def _keep(self, entry: MemoryEntry, *, overwrites: bool = True) -> MemoryEntry:
        with self._lock:
            earlier = self._entries.get(entry.key)
            if earlier is not None:
                if not overwrites:
                    return earlier
                entry = replace(entry, created_at=earlier.created_at)
            self._entries[entry.key] = entry
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                listener(entry)
            except Exception:
                logger.exception("A listener of a run's memory failed")
        return entry

    def get(self, key: str) -> MemoryEntry | None:
        with self._lock:
            return self._entries.get(key)

    def get_value(self, key: str) -> Any:
        """Return a copy of the key's value; None if the key does not exist."""
        entry = self.get(key)
        return None if entry is None else entry.value

    def titles(self, keys: Collection[str]) -> dict[str, str]:
        """Return the titles of the keys that exist."""
        return {key: entry.title or "" for key in keys if (entry := self.get(key))}

    def has(self, key: str) -> bool:
        return self.get(key) is not None

    def snapshot(self) -> list[MemoryEntry]:
        """Return all current entries, in the order in which their keys were first written."""
        with self._lock:
            return list(self._entries.values())

    def list(
        self,
        *,
        kind: MemoryKind | str | Iterable[str] | None = None,
        keys: Iterable[str] | None = None,
        key_prefix: str = "",
        sources: Iterable[str] | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries that match all given filters. An entry without a source matches no ``sources``."""
        kinds = None if kind is None else {kind} if isinstance(kind, str) else set(kind)
        named = None if keys is None else set(keys)
        origins = None if sources is None else set(sources)
        return [
            entry
            for entry in self.snapshot()
            if (kinds is None or entry.kind in kinds)
            and (named is None or entry.key in named)
            and entry.key.startswith(key_prefix)
            and (origins is None or entry.source in origins)
        ]

    def newest(
        self, most: int, *, kind: Iterable[str] | None, key_prefix: str, sources: Iterable[str] | None
    ) -> tuple[int, Sequence[Head]]:
        """Return the number of all matching entries, and the newest ``most`` of them, oldest first."""
        entries = self.list(kind=kind, key_prefix=key_prefix, sources=sources)
        entries.sort(key=lambda entry: entry.created_at)
        return len(entries), entries[-most:]

    def count(self) -> int:
        with self._lock:
            return len(self._entries)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every entry written from now on. Return a function that unsubscribes the listener."""
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = [other for other in self._listeners if other is not listener]

        return unsubscribe

    def clear(self, *, kind: MemoryKind | str | Iterable[str] | None = None, key_prefix: str = "") -> int:
        """Delete the entries that match the filters, or all without filters, and return their number."""
        with self._lock:
            gone = self.list(kind=kind, key_prefix=key_prefix)
            for entry in gone:
                del self._entries[entry.key]
        return len(gone)

    def restore(self, entries: Iterable[MemoryEntry]) -> None:
        """Add entries, for example from ``snapshot``, with their original creation times.

        An entry replaces the one that has its key, and then takes over that one's creation time.
        """
        for entry in entries:
            self._keep(entry)


@dataclass
class StoredRunEntries(RunEntries):
    """``RunEntries`` that ``keep`` stores in the database, in the caller's transaction. Each read first loads
    entries changed by other processes, with one or two small queries.
    """

    run_pk: int = 0
    _waiting: dict[str, MemoryEntry] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subscribe(self._store)

    def set_if_absent(self, key: str, kind: MemoryKind, value: object, **metadata: str | None) -> MemoryEntry:
        return self.get(key) or super().set_if_absent(key, kind, value, **metadata)

    def get(self, key: str) -> MemoryEntry | None:
        if key not in self._waiting:
            rows = RunEntry.objects.filter(run_id=self.run_pk, key=key)
            self._take_in(rows.exclude(version=self._versions.get(key, 0)))
        return super().get(key)

    def titles(self, keys: Collection[str]) -> dict[str, str]:
        rows = RunEntry.objects.order_by().filter(run_id=self.run_pk, key__in=keys)
        stored = {key: title or "" for key, title in rows.values_list("key", "title")} if keys else {}
        return stored | {key: entry.title or "" for key, entry in self._waiting.items() if key in keys}

    def snapshot(self) -> list[MemoryEntry]:
        rows = RunEntry.objects.filter(run_id=self.run_pk)
        stored = rows.values_list("key", "version")
        if changed := [key for key, version in stored if self._versions.get(key) != version]:
            self._take_in(rows.filter(key__in=changed).exclude(key__in=self._waiting))
        return super().snapshot()

    def newest(
        self, most: int, *, kind: Iterable[str] | None, key_prefix: str, sources: Iterable[str] | None
    ) -> tuple[int, Sequence[Head]]:
        rows = RunEntry.objects.filter(run_id=self.run_pk)
        if key_prefix:
            rows = rows.filter(key__startswith=key_prefix)
        if kind is not None:
            rows = rows.filter(kind__in=kind)
        if sources is not None:
            rows = rows.filter(source__in=sources)
        columns = ("key", "kind", "size", "created_at", "source", "title", "description")
        newest = rows.order_by("-created_at", "-pk").values_list(*columns)[:most]
        heads = [StoredHead._make(row) for row in newest][::-1]
        return (len(heads) if len(heads) < most else rows.count()), heads

    def count(self) -> int:
        return RunEntry.objects.filter(run_id=self.run_pk).count()

    def clear(self, *, kind: MemoryKind | str | Iterable[str] | None = None, key_prefix: str = "") -> int:
        """Delete matching entries from the database and from this process, and return their number."""
        gone = [entry.key for entry in self.list(kind=kind, key_prefix=key_prefix)]
        RunEntry.objects.filter(run_id=self.run_pk, key__in=gone).delete()
        with self._lock:
            for key in gone:
                for known in (self._entries, self._waiting, self._versions):
                    known.pop(key, None)
        return len(gone)

    def keep(self) -> None:
        """Store the entries that are not stored yet, in one statement."""
        waiting, self._waiting = self._waiting, {}
        self._versions |= _save(self.run_pk, waiting.values())

    def _take_in(self, changed: QuerySet[RunEntry]) -> None:
        for row in changed:
            with self._lock:
                self._entries[row.key] = entry_of(row)
                self._versions[row.key] = row.version

    def _store(self, entry: MemoryEntry) -> None:
        self._waiting[entry.key] = entry


_KEEP = """
INSERT INTO chat_runentry (run_id, key, kind, "json", size, source, title, description, created_at, version)
SELECT %(run)s::bigint, *, 1 FROM jsonb_to_recordset(%(entries)s::jsonb) AS entry (
    key text, kind text, "json" text, size integer, source text, title text, description text, created_at timestamptz
)
ON CONFLICT (run_id, key) DO UPDATE SET
    kind = excluded.kind, "json" = excluded."json", size = excluded.size, source = excluded.source,
    title = excluded.title, description = excluded.description, version = chat_runentry.version + 1
RETURNING key, version
"""


def _save(run_pk: int, entries: Collection[MemoryEntry]) -> dict[str, int]:
    """Insert or overwrite entries, safely with concurrent writers, and return the new versions by key."""
    if not entries:
        return {}
    rows = [
        asdict(entry)
        | {
            "size": entry.value_bytes,
            "title": _storable(entry.title),
            "description": _storable(entry.description),
            "created_at": entry.created_at.isoformat(),
        }
        for entry in entries
    ]
    return dict(queries.rows(_KEEP, {"run": run_pk, "entries": json.dumps(rows)}, binary=False))


def _storable(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "").encode(errors="replace").decode()


def entry_of(row: RunEntry) -> MemoryEntry:
    return MemoryEntry(
        row.key, MemoryKind(row.kind), row.json, row.created_at, row.source, row.title, row.description
    )
