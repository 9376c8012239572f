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
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from chat.agents.claiming import take_next, takeable
from chat.agents.run_progress import hurry
from chat.agents.worker import do
from memoryhub.database.locks import alone

logger = logging.getLogger(__name__)
AT_ONCE = 4  # steps of one lane: they wait for the model most of the time
AGAIN = 1.0  # seconds after which a thread that has left is followed by another, while others are at work
PAUSE = 0.1  # seconds until a lane looks again whether a step of its own has led to another


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
    done, me, step = 0, threading.get_ident(), None
    while step or time.monotonic() < ends:
        busy.add(me)  # before it looks: what it is about to take may lead to something
        try:
            if step := step or take_next(now=timezone.now()):
                step = do(step, ends=ends)
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
