"""Who does what is ready: lanes that take one step after another, whosever turn it is.

The queue's jobs are tickets, all alike, and only hurry work; the tables know what is left. There are fewer lanes than
workers, so that other jobs never wait for a model.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, Max, Min, Q, QuerySet
from django.utils import timezone

from chat.agents.course import hurry
from chat.agents.doing import do
from chat.models.runs import Run, RunStatus, RunStep, RunStepStatus
from memoryhub.database.locks import alone

logger = logging.getLogger(__name__)
STALE = timedelta(seconds=30)  # after which whoever did a step is taken for dead
AT_ONCE = 4  # steps of one lane: they wait for the model most of the time
AGAIN = 1.0  # seconds after which a thread that has left is followed by another, while others are at work
PAUSE = 0.1  # seconds until a lane looks again whether a step of its own has led to another


def takeable(now: datetime) -> QuerySet[RunStep]:
    """What nobody does: ready, or in the hands of somebody who gives no sign of life."""
    ready = Q(status=RunStepStatus.READY, not_before__lte=now)
    left = Q(status=RunStepStatus.RUNNING, beat_at__lt=now - STALE)
    return RunStep.objects.filter(ready | left, run__status=RunStatus.RUNNING)


def take_next(*, now: datetime) -> RunStep | None:
    """The next step, now in the hands of the caller alone: of whom the fewest steps are being done, among equals who
    waited longest. With its run and what that works with. Costs four small queries.
    """
    waiting = takeable(now).values("user").annotate(oldest=Min("pk"))
    if not waiting:
        return None
    people = [row["user"] for row in waiting]
    if len(people) > 1:
        people = _by_turn(people, now)
    for person in people:
        with transaction.atomic():
            rows = takeable(now).filter(user=person).order_by("run__served_at", "pk")
            rows = rows.select_related("run__user", "run__workspace__connection", "run__connection")
            step = rows.select_for_update(of=("self",), skip_locked=True).first()
            if step is not None:
                return _taken(step, now)
    return None


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


def _taken(step: RunStep, now: datetime) -> RunStep:
    step.status, step.beat_at = RunStepStatus.RUNNING, now
    step.lease, step.attempts = step.lease + 1, step.attempts + 1
    step.started_at = step.started_at or now
    step.save(update_fields=["status", "beat_at", "lease", "attempts", "started_at"])
    Run.objects.filter(pk=step.run_id).update(served_at=now, progressed_at=now)
    return step


def work(*, seconds: float, at_once: int = AT_ONCE) -> int:
    """Do what is ready, for so many seconds, in a free lane; how many steps. 0 also where every lane is taken."""
    ends, done = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        with _lane() as free:
            if not free:
                return done
            done += _work(ends, at_once)
        # A step that became ready while the lane was closing found every lane taken.
        if not takeable(timezone.now()).exists():
            return done
    hurry()
    return done


def sweep(*, now: datetime) -> None:
    """A ticket where something is left that no job is at: a lost job, a dead worker, a model that was waited for."""
    if takeable(now).exists():
        hurry()


def _work(ends: float, at_once: int) -> int:
    if at_once == 1:
        return _one_after_another(ends, set())
    busy, counts, threads = set[int](), list[int](), list[threading.Thread]()

    def begin() -> None:
        threads.append(
            threading.Thread(target=lambda: counts.append(_in_thread(ends, busy)), name="step", daemon=True)
        )
        threads[-1].start()

    for _ in range(at_once):
        begin()
    while alive := [each for each in threads if each.is_alive()]:
        alive[0].join(AGAIN)
        if (
            alive[0].is_alive() and len(alive) < at_once
        ):  # one has left: the database was away, or nothing was there yet
            begin()
    return sum(counts)


def _in_thread(ends: float, busy: set[int]) -> int:
    try:
        return _one_after_another(ends, busy)
    except (DatabaseError, InterfaceError):
        logger.warning("The database is away; what a lane was doing goes on from where it was kept")
        return 0
    finally:
        connection.close()


def _one_after_another(ends: float, busy: set[int]) -> int:
    """As long as there is something to do, or a step that another thread of the lane does may lead to something."""
    done, me = 0, threading.get_ident()
    while time.monotonic() < ends:
        busy.add(me)  # before it looks: what it is about to take may lead to something
        try:
            step = take_next(now=timezone.now())
            if step is not None:
                do(step, ends=ends)
                done += 1
                continue
        finally:
            busy.discard(me)
        if not busy:
            return done
        time.sleep(PAUSE)
    return done


@contextmanager
def _lane() -> Iterator[bool]:
    """One of the lanes, until the block ends; a killed worker gives it back by itself."""
    for lane in range(max(1, settings.WORKERS - 1)):
        with alone("chat.agents", lane) as is_free:
            if is_free:
                yield True
                return
    yield False
