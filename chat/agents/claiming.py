"""Taking up steps: what nobody does, whosever turn it is."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet

from chat.models.runs import Run, RunStatus, RunStep, RunStepStatus
from memoryhub.database.queries import Ready

STALE = timedelta(seconds=30)  # after which whoever did a step is taken for dead


def takeable(now: datetime) -> QuerySet[RunStep]:
    """What nobody does: ready, or in the hands of somebody who gives no sign of life."""
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
    """The next step, now in the hands of the caller alone: of whom the fewest steps are being done, among equals who
    waited longest. With its run and what that works with. Costs four small queries.
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
    """The values of a step, and what they are now, that the caller takes in hand."""
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
