"""A run's memory and budget in the database, shared by all processes that work on the run, and its estimated cost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, QuerySet

from chat.models.runs import Run, RunEntry, RunEvent, RunMode, RunQuerySet, RunStatus, RunTemplate
from chat.runs.memory import AgentMemory, Head, MemoryEntry, MemoryKind
from chat.runs.plan import TaskPlan
from memoryhub import events
from memoryhub.database import queries
from memoryhub.kept import kept
from memoryhub.llm.metering import Price, Usage, cost_of
from workspaces.billing import Bill, rate_of
from workspaces.connections import Chosen, chosen_for
from workspaces.models import User

CONCLUDE_AT = 0.9  # share of the tokens after which a step may only finish
SPENT = {
    "tokens": kept("The run has used up its tokens."),
    "rounds": kept("The run has used up its replies of the model."),
    "minutes": kept("The run has used up its time."),
}


@dataclass(frozen=True)
class Limits:
    """Limits of a run. ``rounds`` are model replies of the whole run, ``step_rounds`` those of one step."""

    rounds: int = 200
    tokens: int = 400_000
    minutes: int = 60
    step_rounds: int = 16


@dataclass(frozen=True)
class Used:
    rounds: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def more(self, tokens_in: int, tokens_out: int) -> Used:
        """Return the usage including one more model reply."""
        return Used(self.rounds + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out)


@dataclass
class Budget:
    """The limits and usage of a run, shared by its steps. ``is_over_time``: the minutes are used up."""

    limits: Limits = Limits()
    used: Used = Used()
    is_over_time: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """Count one model reply."""
        with self._lock:
            self.used = self.used.more(tokens_in, tokens_out)

    @property
    def is_nearly_spent(self) -> bool:
        return self.used.tokens > CONCLUDE_AT * self.limits.tokens

    @property
    def what_is_spent(self) -> str:
        """The name of the limit that is used up, else an empty string."""
        if self.used.tokens >= self.limits.tokens:
            return "tokens"
        if self.used.rounds >= self.limits.rounds:
            return "rounds"
        return "minutes" if self.is_over_time else ""


LOOKED_AT = 20  # newest completed runs that the estimate is based on
# The default without completed runs: three replies, each with tool results.
A_STEP = Usage(5_500, tokens_out=500)
STEPS = {RunMode.LOOP: 1, RunMode.PLAN: 5, RunMode.TEAM: 5, RunMode.RESEARCH: 5}  # without the planning step
ITEMS = 4  # assumed length of a list before it is known


@dataclass(frozen=True)
class Expected:
    """An estimate to two significant digits. ``cost`` is in the installation's currency; None if the model has no
    price.
    """

    tokens: int
    cost: Decimal | None = None


def estimate(run: Run, plan: TaskPlan | None = None, *, chosen: Chosen | None = None) -> None:
    """Set the run's estimated tokens and cost, for the price of the ``chosen`` or else the current model. The caller
    saves the run.
    """
    price = rate_of(chosen or chosen_for(run.workspace, run.user, first=run.connection)).price
    found = estimated_for(run.workspace_id, run.user, run.mode, plan, price=price)
    run.expected_tokens, run.expected_cost = found.tokens, found.cost


def estimated_for(
    workspace_id: int, user: User, mode: str, plan: TaskPlan | None = None, *, price: Price | None = None
) -> Expected:
    """Return the estimate, based on completed runs of this mode that ``user`` may see, else of any mode. At most two
    queries.
    """
    done = Run.objects.visible_to(user).filter(workspace=workspace_id, status=RunStatus.DONE)
    seen = _seen(done.filter(mode=mode)) or _seen(done)
    taken = sum((usage for usage, _steps in seen), Usage()) if seen else A_STEP
    steps = sum(steps for _usage, steps in seen) if seen else 1
    if plan is not None:
        number = sum(ITEMS if step.over else 1 for task in plan.tasks for step in task.steps)
    else:
        number = round(steps / len(seen)) if seen else STEPS[RunMode(mode)]
    read, written = (number * each // max(1, steps) for each in (taken.tokens_in, taken.tokens_out))
    cost = cost_of(Usage(read, tokens_out=written), price)
    tokens = number * taken.tokens // max(1, steps)
    return Expected(int(float(f"{tokens:.2g}")), None if cost is None else Decimal(f"{cost:.2g}"))


def _seen(runs: RunQuerySet) -> list[tuple[Usage, int]]:
    """Return the usage and number of steps of the newest runs."""
    newest = runs.annotate(number=Count("steps")).order_by("-pk")[:LOOKED_AT]
    return [
        (Usage(tokens_in, tokens_out=tokens_out), number)
        for tokens_in, tokens_out, number in newest.values_list("tokens_in", "tokens_out", "number")
    ]


class Lost(Exception):
    """Another worker has claimed the step, or the run was deleted, so this worker's results are discarded."""


class Stopped(Exception):
    """The run was stopped, so the step is stored as it is."""


def run_channel(run_id: str) -> str:
    return f"run:{run_id}"


def record_event(run: Run, kind: str, data: dict[str, Any], *, step: str = "", now: datetime) -> None:
    """Record an event of ids and numbers, without texts, and publish it to followers."""
    record_events(run, [RunEvent(run_id=run.pk, step=step, kind=kind, data=data, at=now)])


_TELL = """
WITH stored AS (
    INSERT INTO chat_runevent (run_id, step, kind, data, at)
    SELECT %(run)s::bigint, * FROM jsonb_to_recordset(%(happened)s::jsonb)
        AS event (step text, kind text, data jsonb, at timestamptz)
)
SELECT pg_notify(%(channel)s, payload) FROM jsonb_array_elements_text(%(payloads)s::jsonb) AS payload
"""


def record_events(run: Run, happened: Sequence[RunEvent]) -> None:
    """Store and publish events in order, in one statement, since events are half of a step's writes."""
    if not happened:
        return
    rows = [{"step": e.step, "kind": e.kind, "data": e.data, "at": e.at.isoformat()} for e in happened]
    kinds = dict.fromkeys(event.kind for event in happened)
    told = [events.payload(run_channel(run.public_id), kind) for kind in kinds]
    given = {"run": run.pk, "happened": json.dumps(rows), "payloads": json.dumps(told)}
    queries.rows(_TELL, given | {"channel": events.NOTIFY_CHANNEL}, binary=False)


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
    """An ``AgentMemory`` that stores its entries, and before each read loads entries changed by other processes. One
    small query per read.

    ``waits``: entries are stored only by ``keep``, in the caller's transaction. Otherwise each is stored at once,
    and an error is only logged, as that of any listener.
    """

    run_pk: int = 0
    waits: bool = False
    _waiting: dict[str, MemoryEntry] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subscribe(self._store)

    def set_if_absent(self, key: str, kind: MemoryKind, value: object, **said: str | None) -> MemoryEntry:
        return self.get(key) or super().set_if_absent(key, kind, value, **said)

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
        """Return the newest entries without values, from an index, and the number of all matching entries."""
        asked = {
            "run": self.run_pk,
            "kinds": None if kind is None else list(kind),
            "prefix": key_prefix,
            "sources": None if sources is None else list(sources),
        }
        rows = queries.rows(_NEWEST, asked | {"most": most}, binary=False)
        found = [StoredHead._make(row) for row in reversed(rows)]
        if len(found) < most:
            return len(found), found
        return queries.rows(_HOW_MANY, asked, binary=False)[0][0], found

    def count(self) -> int:
        return RunEntry.objects.filter(run_id=self.run_pk).count()

    def clear(self, *, kind: MemoryKind | str | Iterable[str] | None = None, key_prefix: str = "") -> int:
        """Delete matching entries of all processes, and return their number."""
        gone = [entry.key for entry in self.list(kind=kind, key_prefix=key_prefix)]
        RunEntry.objects.filter(run_id=self.run_pk, key__in=gone).delete()
        with self._lock:
            for key in gone:
                for known in (self._entries, self._waiting, self._versions):
                    known.pop(key, None)
        return len(gone)

    def keep(self) -> None:
        """Store the pending entries in one statement. Call it in the transaction that they belong to."""
        waiting, self._waiting = self._waiting, {}
        self._versions |= _keep(self.run_pk, waiting.values())

    def _take_in(self, changed: QuerySet[RunEntry]) -> None:
        for row in changed:
            with self._lock:
                self._entries[row.key] = entry_of(row)
                self._versions[row.key] = row.version

    def _store(self, entry: MemoryEntry) -> None:
        if self.waits:
            self._waiting[entry.key] = entry
            return
        with transaction.atomic():
            self._versions |= _keep(self.run_pk, [entry])


_WHICH = """
FROM chat_runentry WHERE run_id = %(run)s::bigint AND starts_with(key, %(prefix)s::text)
AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s::text[]))
AND (%(sources)s::text[] IS NULL OR source = ANY(%(sources)s::text[]))
"""
_NEWEST = f"""
SELECT key, kind, size, created_at, source, title, description {_WHICH}
ORDER BY created_at DESC, id DESC LIMIT %(most)s::int
"""
_HOW_MANY = f"SELECT count(*) {_WHICH}"
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


def _keep(run_pk: int, entries: Collection[MemoryEntry]) -> dict[str, int]:
    """Insert or overwrite entries, safely with concurrent writers, and return the new versions by key."""
    if not entries:
        return {}
    rows = [
        {
            "key": entry.key,
            "kind": entry.kind,
            "json": entry.json,
            "size": entry.value_bytes,
            "source": entry.source,
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


_SPEND = """
UPDATE chat_run SET rounds = rounds + %s, tokens_in = tokens_in + %s, tokens_out = tokens_out + %s,
    cost = coalesce(cost + %s, cost, %s) WHERE id = %s
RETURNING status, deadline_at, rounds, tokens_in, tokens_out
"""


@dataclass
class StoredBudget(Budget):
    """A budget in the run's row, shared by all workers of the run. ``keep`` adds the usage of this worker: tokens and
    cost of the provider's ``bill`` if there is one, else estimated tokens.
    """

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

    def count_in(self, run: Run, bill: Bill | None) -> None:
        """Add the new usage to ``run``. The caller has locked its row and saves it."""
        spent, cost = self._taken(bill)
        self._not_kept = Used()
        run.rounds += spent.rounds
        run.tokens_in += spent.tokens_in
        run.tokens_out += spent.tokens_out
        if cost is not None:
            run.cost = (run.cost or 0) + cost

    def _taken(self, bill: Bill | None) -> tuple[Used, Decimal | None]:
        spent = self._not_kept
        if bill is None:
            return spent, None
        return Used(spent.rounds, bill.tokens_in, bill.tokens_out), bill.cost if bill.has_cost else None

    def keep(self, bill: Bill | None) -> str:
        """Add the new usage to the run's row and return the run's status. Raises Lost if the run was deleted."""
        spent, cost = self._taken(bill)
        if not spent.rounds:
            status = Run.objects.order_by().filter(pk=self.run_pk).values_list("status", flat=True).first()
            if status is None:
                raise Lost
            return status
        with connection.cursor() as cursor:
            new = [spent.rounds, spent.tokens_in, spent.tokens_out, cost, cost, self.run_pk]
            cursor.execute(_SPEND, new)
            found = cursor.fetchone()
        if found is None:
            raise Lost
        status, deadline, *used = found
        self.used, self.is_over_time = Used(*used), deadline <= self.now()
        self._not_kept = Used()
        return str(status)


def limits_of(run: Run | RunTemplate) -> Limits:
    return Limits(**{name: run.limits[name] for name in asdict(Limits()) if name in run.limits})
