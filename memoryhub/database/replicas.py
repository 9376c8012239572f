"""Reads from replicas, such that users see their own writes.

``read`` uses a replica that is close enough behind the primary (``State.is_near``), or the primary for a user who wrote
recently (``is_pinned``). While the primary is unavailable (``Server``), a replica answers whole requests that only read
(``answering``). All of this is inactive without ``MEMORYHUB_REPLICA_URLS``.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection, connections
from django.db.utils import OperationalError

from memoryhub.database import queries
from memoryhub.environment import libpq_settings
from memoryhub.monitoring import metrics

# The state of a thread. It is separate from the functions below, because database connections use it.


class _Here(threading.local):
    only_reads = False  # whether a replica could answer its request
    stands_in = False  # whether a replica answers the whole request
    usual: Any = None  # the primary's connection, while a replica's replaces it


here = _Here()


def refuse_in_vain(alias: str) -> None:
    """Raise OperationalError instead of waiting for an unavailable server, if another server may answer."""
    has_another = here.only_reads or alias != DEFAULT_DB_ALIAS
    if settings.REPLICAS and has_another and server(alias).check():
        raise OperationalError("the server is away")


# Availability of the servers, shared by all threads and checked without waiting for a pool's timeout.

logger = logging.getLogger(__name__)
FRESH = 0.5  # seconds for which all threads share a result
AGAIN = 1.0  # seconds after which an unavailable server is checked again
PATIENCE = "2"  # timeout of a connection, in seconds


class Server:
    """Availability of a server. It counts as available until a check fails."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._lock = threading.Lock()
        self._away, self._checked_at, self._aside_until = False, 0.0, 0.0

    def is_away(self) -> bool:
        """Return whether the server is unavailable.

        While it is, one thread checks again each second, and the other threads use its result.
        """
        if not self._away:
            return False
        if self._lock.locked() or time.monotonic() - self._checked_at < AGAIN:
            return True
        return self.check()

    def set_aside(self) -> None:
        """Skip the server for a second, because it responds but cannot be used now."""
        self._aside_until = time.monotonic() + AGAIN

    def is_aside(self) -> bool:
        return time.monotonic() < self._aside_until

    def check(self) -> bool:
        """Check over a new connection whether the server is unavailable. Concurrent callers share the result."""
        with self._lock:
            if time.monotonic() - self._checked_at > FRESH:
                away = not self._answers()
                if away != self._away:
                    logger.warning("The database %r %s.", self.alias, "is away" if away else "is back")
                self._away, self._checked_at = away, time.monotonic()
            return self._away

    def _answers(self) -> bool:
        try:
            with psycopg.connect(**connection_settings(self.alias)) as connection:
                connection.execute("SELECT")
        except psycopg.Error:
            return False
        return True


def connection_settings(alias: str) -> dict[str, Any]:
    """Return the settings of a direct connection, outside the pool and without a pooler.

    A pooler would accept the connection even if the server is unavailable.
    """
    own = settings.LISTEN_AT if alias == DEFAULT_DB_ALIAS else {}
    return libpq_settings(settings.DATABASES[alias]) | own | {"connect_timeout": PATIENCE}


@functools.cache
def server(alias: str = DEFAULT_DB_ALIAS) -> Server:
    return Server(alias)


# Replication state, as each server reports it.

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
KEPT = 0.5  # seconds for which a state is reused
Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
_found: dict[str, tuple[float, State]] = {}


@dataclass(frozen=True)
class State:
    """Replication state of a server.

    ``lag`` is the largest possible delay in seconds. ``applied`` means that everything received has been applied.
    """

    follows: bool  # False if it was promoted or never was a replica
    applied: bool
    lag: float
    started: float  # when the server started, which identifies it

    @property
    def is_near(self) -> bool:
        """Return whether the server follows the primary with a lag of at most ``settings.REPLICA_LAG``."""
        return self.follows and self.lag <= settings.REPLICA_LAG

    @property
    def stands_in(self) -> bool:
        """Return whether the server may replace an unavailable primary: it has applied everything that it received."""
        return self.follows and self.applied


def state(ask: Ask) -> State:
    """Return a server's replication state, queried with ``ask``. One query."""
    return State(*ask(STATE, {})[0])


def state_lately(alias: str, ask: Ask) -> State:
    """Return a server's replication state, at most half a second old. At most one query."""
    at, found = _found.get(alias, (0.0, None))
    if found is None or time.monotonic() - at > KEPT:
        found = state(ask)
        _found[alias] = (time.monotonic(), found)
    return found


def probe_state(alias: str) -> State | None:
    """Return a server's state over a new connection, for monitoring; None if the server is unavailable."""
    try:
        with psycopg.connect(**connection_settings(alias)) as connection:
            return state(lambda statement, params: connection.execute(statement, params).fetchall())
    except psycopg.Error:
        return None


def what_ails(found: State | None) -> str:
    """Return a server's fault in words that reveal nothing confidential; empty if it has none.

    The primary itself may be listed among the replicas, because another server may be promoted later.
    """
    if found is None:
        return AWAY
    if not found.follows:
        primary = probe_state(DEFAULT_DB_ALIAS)
        return "" if primary is not None and primary.started == found.started else ALONE
    return "" if found.lag <= settings.REPLICA_LAG else f"{found.lag:.0f} s behind"


def may_stand_in(why: str) -> bool:
    """Return whether a replica with this fault may still answer reads while the primary is unavailable."""
    return why not in {AWAY, ALONE}


# Users who wrote recently or received events of others' writes. They read from the primary until the replicas have
# caught up.

MARGIN = 3.0  # seconds added to the permitted lag, for clock differences and cached states


def pin_to_primary(person: int) -> None:
    """Make this user read from the primary until the replicas must have caught up.

    Writes to the cache, if there are replicas.
    """
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


# Use of a replica: within a block, Django's default connection is replaced by a replica's connection.

T = TypeVar("T")
_turns = count()


def read(person: int, ask: Callable[[], T]) -> T:
    """Return the result of ``ask``, run on a replica with little lag, or on the primary if this user wrote recently.

    Replicas are used only in requests that only read, outside transactions. ``ask`` must not write or return lazy
    querysets, and is called again on the primary if a replica fails. Costs a query to the primary, and up to one to the
    replica every half second.
    """
    if not here.only_reads or here.usual is not None or connection.in_atomic_block:
        return ask()
    for alias in () if is_pinned(person) else _in_turn():
        if server(alias).is_aside():
            continue
        try:
            with _instead(alias):
                if state_lately(alias, queries.rows).is_near:
                    answer = ask()
                    metrics.READS.labels("replica").inc()
                    return answer
            server(alias).set_aside()
        except (DatabaseError, InterfaceError) as error:
            logger.warning(
                "A replica failed, the primary is asked: %s", type(error.__cause__ or error).__name__
            )
            connections[alias].close()
            server(alias).check()
    metrics.READS.labels("primary").inc()
    return ask()


def is_reading() -> bool:
    """Return whether queries in this thread currently go to a replica."""
    return here.usual is not None


def stands_in() -> bool:
    """Return whether a replica answers this request because the primary is unavailable, so nothing can be written."""
    return here.stands_in


@contextmanager
def on_primary() -> Iterator[None]:
    """Use the primary within the block, for writes of a reading request.

    While a replica replaces an unavailable primary, the block still uses the replica and must not write.
    """
    if here.usual is None or here.stands_in:
        yield
        return
    replica, usual = connections[DEFAULT_DB_ALIAS], here.usual
    connections[DEFAULT_DB_ALIAS], here.usual = usual, None
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], here.usual = replica, usual


@contextmanager
def answering() -> Iterator[None]:
    """Allow replicas for a request that only reads.

    ``read`` may choose a replica for parts of it. While the primary is unavailable, a replica answers the whole
    request.
    """
    here.only_reads = True
    try:
        alias = _first_that(lambda found: found.stands_in) if server().is_away() else None
        if alias is None:
            yield
            return
        with _instead(alias):
            here.stands_in = True
            metrics.READS.labels("stand-in").inc()
            yield
    finally:
        here.only_reads = here.stands_in = False


def _first_that(fits: Callable[[State], bool]) -> str | None:
    for alias in _in_turn():
        try:
            with _instead(alias):
                if fits(state(queries.rows)):
                    return alias
        except (DatabaseError, InterfaceError):
            server(alias).check()
    return None


def _in_turn() -> list[str]:
    """Return the available replicas, starting with the next one at each call."""
    there = [alias for alias in settings.REPLICAS if not server(alias).is_away()]
    first = next(_turns) % len(there) if there else 0
    return there[first:] + there[:first]


@contextmanager
def _instead(alias: str) -> Iterator[None]:
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS], here.usual = connections[alias], usual
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], here.usual = usual, None
