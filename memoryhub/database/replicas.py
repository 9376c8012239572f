"""Reads from replicas by Django's database router, such that users see their own writes.

``read`` uses a replica that is close enough behind the primary (``State.is_near``), or the primary for a user who wrote
recently (``is_pinned``). While the primary is unavailable, a replica answers whole requests that only read
(``answering``). All of this is inactive without ``MEMORYHUB_REPLICA_URLS``.
"""

from __future__ import annotations

import logging
import random
import select
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection, connections
from django.db.backends.postgresql import base
from django.db.utils import OperationalError
from psycopg_pool import PoolTimeout

from memoryhub.database.queries import current_connection, using
from memoryhub.environment import libpq_settings
from memoryhub.monitoring import metrics

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Whether replicas may answer the request, and whether one answers all of it.
_only_reads: ContextVar[bool] = ContextVar("only_reads", default=False)
_stands_in: ContextVar[bool] = ContextVar("stands_in", default=False)


class Router:
    """A database router: reads use the database chosen by ``using``, and writes the primary.

    While a replica replaces an unavailable primary, writes go to the replica, which refuses them at once.
    """

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return current_connection().alias

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return current_connection().alias if _stands_in.get() else DEFAULT_DB_ALIAS

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == DEFAULT_DB_ALIAS


def is_reading() -> bool:
    """Return whether queries currently go to a replica."""
    return current_connection().alias != DEFAULT_DB_ALIAS


def stands_in() -> bool:
    """Return whether a replica answers this request because the primary is unavailable, so nothing can be written."""
    return _stands_in.get()


def read(person: int, ask: Callable[[], T]) -> T:
    """Return the result of ``ask``, run on a replica with little lag, or on the primary if this user wrote recently.

    Replicas are used only in requests that only read, outside transactions. ``ask`` must not return lazy querysets, and
    is called again on the primary if a replica fails. Costs a query to the primary, and up to one connect to each
    replica every half second.
    """
    if not _only_reads.get() or is_reading() or connection.in_atomic_block:
        return ask()
    for alias in () if is_pinned(person) else _in_any_order():
        state = state_of(alias)
        if state is None or not state.is_near:
            continue
        try:
            with using(alias):
                answer = ask()
        except (DatabaseError, InterfaceError) as error:
            why = type(error.__cause__ or error).__name__
            logger.warning("A replica failed, so the primary answers: %s", why)
            connections[alias].close()
            _states[alias] = (time.monotonic(), None)
        else:
            metrics.READS.labels("replica").inc()
            return answer
    metrics.READS.labels("primary").inc()
    return ask()


@contextmanager
def answering() -> Iterator[None]:
    """Let ``read`` choose replicas within a request that only reads. While the primary is away, one answers all."""
    alias = DEFAULT_DB_ALIAS
    if primary_is_away():
        able = (each for each in _in_any_order() if (state := state_of(each)) and state.stands_in)
        alias = next(able, DEFAULT_DB_ALIAS)
    before = _only_reads.set(True), _stands_in.set(alias != DEFAULT_DB_ALIAS)
    try:
        if stands_in():
            metrics.READS.labels("stand-in").inc()
        with using(alias):
            yield
    finally:
        _only_reads.reset(before[0])
        _stands_in.reset(before[1])


def _in_any_order() -> list[str]:
    return random.sample(settings.REPLICAS, len(settings.REPLICAS))


# Users who wrote recently or received events of others' writes. They read from the primary until the replicas have
# caught up.

MARGIN = 3.0  # seconds added to the permitted lag: a state may be used for so long, and clocks differ


def pin_to_primary(person: int) -> None:
    """Make this user read from the primary while a replica may lag behind. Writes to the cache if there are any."""
    if not settings.REPLICAS:
        return
    try:
        cache.set(_key(person), True, settings.REPLICA_LAG + MARGIN)
    except (DatabaseError, InterfaceError) as error:  # the write itself has succeeded
        logger.warning("A person was not pinned: %s", type(error.__cause__ or error).__name__)


def is_pinned(person: int) -> bool:
    """Return whether this user reads from the primary. One query to the primary."""
    return cache.get(_key(person)) is not None


def _key(person: int) -> str:
    return f"pinned:{person}"


# Replication state, as each server reports it over a connection of its own: a pool may be exhausted, and a pooler
# accepts connections even if its server is unavailable.

# A replica that is receiving and has applied everything has a lag of 0. Otherwise the lag is the age of its last
# replayed transaction, even if the primary was idle since, because the replica cannot tell.
STATE = """
SELECT pg_is_in_recovery(), applied,
       CASE WHEN applied AND receiving THEN 0 ELSE extract(epoch FROM clock_timestamp() - since)::float8 END,
       extract(epoch FROM pg_postmaster_start_time())::float8
FROM (SELECT coalesce(pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn(), true) AS applied,
             EXISTS (SELECT 1 FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) AS receiving,
             coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()) AS since) AS now
"""
AWAY, ALONE = "cannot be reached", "follows no primary"
KEPT, SKIPPED = 0.5, 1.0  # seconds for which a good state is reused, and a server with another one is skipped
PATIENCE = "2"  # timeout of a connection, in seconds


@dataclass(frozen=True)
class State:
    """Replication state of a server."""

    follows: bool  # False if it was promoted or never was a replica
    applied: bool  # whether everything that it received has been applied
    lag: float  # the largest possible delay in seconds
    started: float  # when the server started, which identifies it

    @property
    def is_near(self) -> bool:
        """Return whether the server follows the primary with a lag of at most ``settings.REPLICA_LAG``."""
        return self.follows and self.lag <= settings.REPLICA_LAG

    @property
    def stands_in(self) -> bool:
        """Return whether the server may replace an unavailable primary: it has applied everything that it received."""
        return self.follows and self.applied


_states: dict[str, tuple[float, State | None]] = {}
NEVER = (float("-inf"), None)
_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
_primary_is_away = False


def state_of(alias: str, *, wait: bool = False) -> State | None:
    """Return a server's state, about half a second old at most; None if the server is unavailable.

    One thread at a time queries the server, over a new connection. Other threads get the last state, unless they
    ``wait``.
    """
    if not _is_fresh(alias, wait) and _locks[alias].acquire(blocking=wait or alias not in _states):
        try:
            if not _is_fresh(alias, wait):
                _states[alias] = (time.monotonic(), probe_state(alias))
        finally:
            _locks[alias].release()
    return _states.get(alias, NEVER)[1]


def _is_fresh(alias: str, wait: bool) -> bool:
    at, state = _states.get(alias, NEVER)
    is_good = wait or (state is not None and state.is_near)
    return time.monotonic() - at < (KEPT if is_good else SKIPPED)


def primary_is_away(*, failed: bool = False) -> bool:
    """Return whether the primary is unavailable.

    It counts as available until the caller reports a failed query with ``failed``, and a new connection to it fails
    too. From then on it is checked each second.
    """
    global _primary_is_away
    if _primary_is_away or failed:
        is_away = state_of(DEFAULT_DB_ALIAS, wait=failed) is None
        if is_away != _primary_is_away:
            logger.warning("The primary %s.", "is away" if is_away else "is back")
            for alias in settings.REPLICAS:  # check again, because they may have received more since
                _states.pop(alias, None)
        _primary_is_away = is_away
    return _primary_is_away


def _fail_fast(alias: str) -> None:
    """Raise OperationalError instead of waiting for an unavailable server, if another server may answer."""
    if alias == DEFAULT_DB_ALIAS:
        is_away = _only_reads.get() and primary_is_away(failed=True)
    else:
        is_away = state_of(alias, wait=True) is None
    if is_away:
        raise OperationalError("the server is away")


ATTEMPTS = 5  # attempts to connect to the primary, each with the pool's timeout


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's Postgres backend, which never returns a pooled connection that was closed while idle.

    Django's own ``CONN_HEALTH_CHECKS`` makes psycopg's pool query the server each time and wait one, two, four …
    seconds after each failed connection, so that most requests would end in PoolTimeout after a restart of the server.

    With replicas, requests do not wait for an unavailable server if another server can answer.
    """

    def get_new_connection(self, conn_params: Any) -> Any:
        if stands_in() and self.alias == DEFAULT_DB_ALIAS:
            raise OperationalError("the primary is away")
        new_connection = self._given_out(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not was_cut(new_connection):
                break
            new_connection.close()
            self.pool.putconn(new_connection)  # the pool replaces closed connections
            _fail_fast(self.alias)
            new_connection = self._given_out(conn_params)
        return new_connection

    def _given_out(self, conn_params: Any) -> Any:
        retries = ATTEMPTS - 1 if settings.REPLICAS and self.alias == DEFAULT_DB_ALIAS else 0
        for _ in range(retries):
            try:
                return super().get_new_connection(conn_params)
            except PoolTimeout:
                _fail_fast(self.alias)
        return super().get_new_connection(conn_params)


def was_cut(connection: Any) -> bool:
    """Return whether an idle connection was closed by the server: its socket is readable. Sends nothing."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def probe_state(alias: str) -> State | None:
    """Return a server's state over a new connection; None if the server is unavailable."""
    own = settings.LISTEN_AT if alias == DEFAULT_DB_ALIAS else {}
    reached = libpq_settings(settings.DATABASES[alias]) | own | {"connect_timeout": PATIENCE}
    try:
        with psycopg.connect(**reached) as probing:
            return State(*probing.execute(STATE).fetchall()[0])
    except psycopg.Error:
        return None


def what_ails(state: State | None) -> str:
    """Return a server's fault in words that reveal nothing confidential; empty if it has none.

    The primary may be listed among the replicas without a fault, because another server may be promoted later.
    """
    if state is None:
        return AWAY
    if not state.follows:
        primary = probe_state(DEFAULT_DB_ALIAS)
        return "" if primary is not None and primary.started == state.started else ALONE
    return "" if state.lag <= settings.REPLICA_LAG else f"{state.lag:.0f} s behind"
