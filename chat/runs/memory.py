"""Memory of a run: a map of keys to JSON values, the only data that its tasks, steps, teammates and tools share. Pure:
a listener can store the changes.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

logger = logging.getLogger(__name__)


class MemoryKind(StrEnum):
    TASK_RESULT = "task_result"
    STEP_RESULT = "step_result"
    INPUT = "input"
    SHARED = "shared"


class memory_keys:
    """The only place where keys are put together."""

    SHARED_PREFIX = "shared:"

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
        """Return the key of a shared entry. A prefix that is already there is not doubled."""
        return f"shared:{name.removeprefix('shared:')}"


@dataclass(frozen=True)
class MemoryEntry:
    """``json`` is the value, whose reader gets a copy of their own each time. ``source``: the producer's id."""

    key: str
    kind: MemoryKind
    json: str
    created_at: datetime
    source: str | None = None
    title: str | None = None
    description: str | None = None

    @property
    def value(self) -> Any:
        return json.loads(self.json)

    @property
    def value_bytes(self) -> int:
        return len(self.json.encode())

    def as_json(self) -> dict[str, Any]:
        """Return the entry for programs and for ``AgentMemory.restore``."""
        return {
            "key": self.key,
            "kind": str(self.kind),
            "value": self.value,
            **{name: text for name in ("source", "title", "description") if (text := getattr(self, name))},
            "createdAt": int(self.created_at.timestamp() * 1000),
        }


class Head(Protocol):
    """An entry without its value."""

    @property
    def key(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def value_bytes(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def source(self) -> str | None: ...
    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...


Listener = Callable[[MemoryEntry], None]


def as_json_text(value: object) -> str:
    """Return the value as JSON. Raises TypeError or ValueError for other values. Half a character is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode()


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class AgentMemory:
    """Safe for threads and tasks: each call sees and leaves the map whole. Listeners are called outside its lock."""

    now: Callable[[], datetime] = _now
    _entries: dict[str, MemoryEntry] = field(default_factory=dict)
    _listeners: list[Listener] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def set(
        self,
        key: str,
        kind: MemoryKind,
        value: object,
        *,
        source: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> MemoryEntry:
        """Keep a value; written again under its key it is replaced, and its ``created_at`` stays."""
        entry = MemoryEntry(
            key, MemoryKind(kind), as_json_text(value), self.now(), source, title, description
        )
        return self._keep(entry)

    def set_if_absent(self, key: str, kind: MemoryKind, value: object, **said: str | None) -> MemoryEntry:
        """Return the entry that is there, or this one; of two at the same instant one stays."""
        entry = MemoryEntry(key, MemoryKind(kind), as_json_text(value), self.now(), **said)
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
        """Return a copy of the value; None where there is none."""
        entry = self.get(key)
        return None if entry is None else entry.value

    def titles(self, keys: Collection[str]) -> dict[str, str]:
        """Return the titles of those keys that exist."""
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
        """Return how many entries match, and the newest of them, oldest first."""
        found = self.list(kind=kind, key_prefix=key_prefix, sources=sources)
        found.sort(key=lambda entry: entry.created_at)
        return len(found), found[-most:]

    def count(self) -> int:
        with self._lock:
            return len(self._entries)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every entry written from now on; what is returned ends that, twice as well."""
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = [other for other in self._listeners if other is not listener]

        return unsubscribe

    def clear(self, *, kind: MemoryKind | str | Iterable[str] | None = None, key_prefix: str = "") -> int:
        """Drop what these filters let through, without any everything; how many."""
        with self._lock:
            gone = self.list(kind=kind, key_prefix=key_prefix)
            for entry in gone:
                del self._entries[entry.key]
        return len(gone)

    def restore(self, entries: Iterable[MemoryEntry]) -> None:
        """Take over entries of a snapshot, with the time at which they were first written."""
        for entry in entries:
            self._keep(entry)
