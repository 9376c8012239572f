"""Claims of steps by workers: the choice of the next step, and the writes of the worker that holds the claim."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from chat.models.runs import Run, RunEvent, RunStatus, RunStep, RunStepStatus
from chat.runs.step import Transcript
from chat.runs.stored_run import Lost, Stopped, StoredBudget, StoredMemory, record_events
from memoryhub.database.queries import Ready
from memoryhub.llm.metering import Meter, Metered
from workspaces.spending.bill import Account, Bill, put

STALE = timedelta(seconds=30)  # without a heartbeat, after which a worker is considered dead


def takeable(now: datetime) -> QuerySet[RunStep]:
    """Filter to steps that can be claimed: ready steps, and steps whose worker is dead."""
    return _takeable(now, now - STALE)


def _takeable(now: datetime, stale: datetime) -> QuerySet[RunStep]:
    ready = Q(status=RunStepStatus.READY, not_before__lte=now)
    left = Q(status=RunStepStatus.RUNNING, beat_at__lt=stale)
    return RunStep.objects.filter(ready | left, run__status=RunStatus.RUNNING)


_WAITING = Ready(
    lambda now, stale: _takeable(now, stale).order_by("user_id").distinct("user_id").only("user_id"),
    now=datetime,
    stale=datetime,
)
_NEXT = Ready(
    lambda now, stale, user: (
        _takeable(now, stale)
        .filter(user=user)
        .order_by("run__served_at", "pk")
        .select_related("run__user", "run__workspace")
        .select_for_update(of=("self",), skip_locked=True)
    ),
    now=datetime,
    stale=datetime,
    user=int,
)


def waits_anything(*, now: datetime) -> bool:
    return _WAITING.first(now=now, stale=now - STALE) is not None


def take_next(*, now: datetime) -> RunStep | None:
    """Claim and return the next step, with its run; None if there is none. Users with the fewest running steps come
    first, then those who have waited longest. Four small queries.
    """
    people = [step.user_id for step in _WAITING.all(now=now, stale=now - STALE)]
    if len(people) > 1:
        people = _by_turn(people, now)
    for person in people:
        with transaction.atomic():
            step = _NEXT.first(now=now, stale=now - STALE, user=person)
            if step is not None:
                RunStep.objects.filter(pk=step.pk).update(**taken(step, now))
                Run.objects.filter(pk=step.run_id).update(served_at=now, progressed_at=now)
                return step
    return None


def taken(step: RunStep, now: datetime) -> dict[str, object]:
    """Mark the step as claimed by the caller, and return the changed fields for an update."""
    values = {
        "status": RunStepStatus.RUNNING,
        "beat_at": now,
        "lease": step.lease + 1,
        "attempts": step.attempts + 1,
        "started_at": step.started_at or now,
    }
    for name, value in values.items():
        setattr(step, name, value)
    return values


def _by_turn(people: list[int], now: datetime) -> list[int]:
    """Order users by their number of running steps, then by when a run of theirs was last served."""
    busy = dict(
        RunStep.objects.filter(user__in=people, status=RunStepStatus.RUNNING, beat_at__gte=now - STALE)
        .order_by()
        .values_list("user")
        .annotate(Count("pk"))
    )
    served = dict(
        Run.objects.filter(user__in=people).order_by().values_list("user").annotate(Max("served_at"))
    )
    return sorted(people, key=lambda person: (busy.get(person, 0), served[person]))


class ClaimedStep:
    """A step that this worker has claimed. Usage, entries and events are stored with the next heartbeat or the end of
    the step, in one transaction.
    """

    def __init__(self, step: RunStep) -> None:
        self.step, self.run = step, step.run
        self.budget = StoredBudget.of(self.run, timezone.now)
        self.memory = StoredMemory(run_pk=self.run.pk, waits=True)
        self.log = Transcript.from_json(dict(step.transcript))
        self.log.save = self.save
        self.happened = list[RunEvent]()
        self.meter = Meter()  # usage of the replies, charged to ``account`` once it is known
        self.account: Account | None = None
        self._mine = RunStep.objects.filter(pk=step.pk, lease=step.lease, status=RunStepStatus.RUNNING)

    def record(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(run_id=self.run.pk, step=self.step.ref, kind=kind, data=data, at=timezone.now())
        self.happened.append(event)

    def save(self) -> None:
        """Store the transcript and the usage."""
        self.beat(transcript=self.log.as_json(), rounds=self.log.rounds, attempts=0)

    def beat(self, **values: Any) -> None:
        """Store a heartbeat. Raises Lost if another worker has claimed the step, and Stopped if the run is stopped."""
        with transaction.atomic():
            # Lock the run's row before the step's, as the end of a step does. The ledger's row comes last.
            status = self.budget.keep(self.bill() if values else None)
            self._change(beat_at=timezone.now(), **values)
            self.memory.keep()
            record_events(self.run, self.happened)
            written = self.count() if values else None  # otherwise a reply is still in progress
        self.happened.clear()
        self.forget(written)
        if status != RunStatus.RUNNING:
            raise Stopped

    def bill(self) -> Bill | None:
        """Return the usage and cost of the replies that are not stored yet."""
        total = self.meter.total()
        return Bill.of(total, self.account.rate) if self.account and total.usage.calls else None

    def count(self) -> Metered | None:
        """Record the usage in the ledger. Call it last in a transaction, since other requests of this user wait for
        that row.
        """
        if self.account is None:
            return None
        total = self.meter.total()
        put(self.account, total, timezone.now())
        return total

    def forget(self, written: Metered | None) -> None:
        """Subtract usage that is committed, so that it is not counted twice."""
        if written is not None:
            self.meter.forget(written)

    def end(self, run: Run, **values: Any) -> None:
        """Store the end of the step. The caller holds the lock of the run's row, saves the run, and publishes and
        counts the events. Raises Lost if another worker has claimed the step.
        """
        # The tool results are no longer needed.
        self._change(**values, rounds=self.log.rounds, transcript={})
        self.budget.count_in(run, self.bill())

    def put_back(self, *, now: datetime, **values: Any) -> None:
        self._mine.update(status=RunStepStatus.READY, beat_at=None, **{"not_before": now} | values)

    def _change(self, **values: Any) -> None:
        if not self._mine.update(**values):
            raise Lost
