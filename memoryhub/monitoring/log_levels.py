"""Levels of our own loggers, changed while every process of every host runs on, and back by themselves.

What is wanted lies in the cache that all share until its time is over. Web processes hear of it at once; the queue's
look before they begin a job. What keeps texts out of the logs is not touched: loggers of libraries, some of which
quote statements with their values or what a model was sent, stay as the settings have them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Any, TypeAlias

from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from memoryhub import events

OURS = ("memoryhub", "workspaces", "memories", "chat", "django-q")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
CHANNEL = KEY = "log-levels"
MOST_MINUTES = 24 * 60
LOOK_EVERY = 5.0  # seconds, of the queue's processes, and only where there is something to do
LOCK = 0x6C6F67  # of changes: one at a time
Wanted: TypeAlias = Mapping[str, tuple[str, datetime]]  # logger: its level, and until when

logger = logging.getLogger(__name__)
_usual: dict[str, int] = {}  # levels of what is changed now, as they were
_applying = threading.RLock()
_timer: threading.Timer | None = None
_refreshed_at = 0.0


class NoSuchLevel(ValueError):
    """What was asked for cannot be had; the text says why."""


def set_level(name: str, level: str, *, minutes: int, now: datetime) -> Wanted:
    """From now on everywhere, for so long; all that is changed now. NoSuchLevel for what may not be changed."""
    level = level.upper()
    if not is_ours(name):
        own = ", ".join(OURS)
        raise NoSuchLevel(
            f"{name} is no logger of MemoryHub's own. Those of {own} and what is below them can be changed."
        )
    if not _is_there(name):
        raise NoSuchLevel(
            f"There is no logger {name}: they are called as modules are, such as memories.recalling."
        )
    if level not in LEVELS:
        raise NoSuchLevel(f"{level} is no level. There are {', '.join(LEVELS)}.")
    if not 1 <= minutes <= MOST_MINUTES:
        raise NoSuchLevel(f"Say for how long: 1 to {MOST_MINUTES} minutes.")
    return _change({name: (level, now + timedelta(minutes=minutes))}, now)


def is_ours(name: str) -> bool:
    """Whether its level may be changed."""
    return name.split(".")[0] in OURS


def set_back(*, now: datetime) -> None:
    """Everything is logged as the settings say again."""
    _change(None, now)


def wanted(now: datetime) -> Wanted:
    return {name: found for name, found in cache.get(KEY, {}).items() if found[1] > now}


def follow() -> None:
    """This process of the web does as is wanted, from now on."""
    events.call_on(CHANNEL, _refresh)


def follow_before_jobs() -> None:
    """The same for processes of the queue, which say nothing while they have nothing to do."""
    from django_q.signals import pre_execute

    def refresh(sender: Any, **kwargs: Any) -> None:
        global _refreshed_at
        if time.monotonic() - _refreshed_at >= LOOK_EVERY:
            _refreshed_at = time.monotonic()
            _refresh()

    pre_execute.connect(refresh, weak=False, dispatch_uid=CHANNEL)


def apply(found: Wanted, now: datetime) -> None:
    """Set the levels of this process, and a clock that sets them back."""
    global _timer
    with _applying:
        if _timer is not None:
            _timer.cancel()
        current = {name: level for name, (level, until) in found.items() if until > now}
        for name in _usual.keys() - current.keys():
            logging.getLogger(name).setLevel(_usual.pop(name))
        for name, level in current.items():
            _usual.setdefault(name, logging.getLogger(name).level)
            logging.getLogger(name).setLevel(level)
        if current:
            ends = min(until for _, until in found.values() if until > now)
            _timer = threading.Timer((ends - now).total_seconds(), lambda: apply(found, timezone.now()))
            _timer.daemon = True
            _timer.start()


def _change(change: Wanted | None, now: datetime) -> Wanted:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        changed = {} if change is None else {**wanted(now), **change}
        longest = max((until for _, until in changed.values()), default=now) - now
        cache.set(KEY, changed, longest.total_seconds())
        events.publish(CHANNEL, "changed")
    return changed


def _refresh() -> None:
    try:
        now = timezone.now()
        apply(wanted(now), now)
    except DatabaseError as error:
        logger.warning("Which levels are wanted could not be read: %s", type(error).__name__)


def _is_there(name: str) -> bool:
    """A module's, or one that the settings name."""
    if name in logging.root.manager.loggerDict:
        return True
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False
