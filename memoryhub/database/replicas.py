"""Reads from replicas, in such a way that each person sees their own writes.

``reading.read`` asks a replica that is near (``state``), or the primary for a person who wrote lately (``pinned``).
While the primary is away (``servers``), whole requests that only read are answered by one (``reading.answering``).
Nothing of this runs without ``MEMORYHUB_REPLICA_URLS``.
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

# What a thread is at: kept apart from what asks databases, since their connections ask for it.


class _Here(threading.local):
    only_reads = False  # its request could be answered by a replica
    stands_in = False  # and is, all of it
    usual: Any = None  # the primary's connection, while another is in its place


here = _Here()


def refuse_in_vain(alias: str) -> None:
    """Raise OperationalError instead of waiting for a server that is away, where another may answer."""
    has_another = here.only_reads or alias != DEFAULT_DB_ALIAS
    if settings.REPLICAS and has_another and server(alias).check():
        raise OperationalError("the server is away")


# Which of the servers cannot be reached: found out once for all threads, without waiting for a pool to give up.

logger = logging.getLogger(__name__)
FRESH = 0.5  # seconds for which an answer is everybody's
AGAIN = 1.0  # seconds after which one that was away is looked at again
PATIENCE = "2"  # seconds to connect in


class Server:
    """State of one server. At first it is there, until a connection to it was cut."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._lock = threading.Lock()
        self._away, self._checked_at, self._aside_until = False, 0.0, 0.0

    def is_away(self) -> bool:
        """Return the known state. While the server is away one thread a second checks again, the others use its
        result.
        """
        if not self._away:
            return False
        if self._lock.locked() or time.monotonic() - self._checked_at < AGAIN:
            return True
        return self.check()

    def set_aside(self) -> None:
        """Skip the server for a second: it answers but is of no use now."""
        self._aside_until = time.monotonic() + AGAIN

    def is_aside(self) -> bool:
        return time.monotonic() < self._aside_until

    def check(self) -> bool:
        """Return whether it is away now, by a connection of its own; parallel callers get the same answer."""
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
    """Return settings of a connection outside the pool, which also bypasses a pooler: that would answer for a server
    that is away.
    """
    own = settings.LISTEN_AT if alias == DEFAULT_DB_ALIAS else {}
    return libpq_settings(settings.DATABASES[alias]) | own | {"connect_timeout": PATIENCE}


@functools.cache
def server(alias: str = DEFAULT_DB_ALIAS) -> Server:
    return Server(alias)


# How far a replica is, as it says itself.

# All that it received is applied, and it goes on receiving: then it is behind by nothing that can be known here. Else
# the last transaction it has says since when, however long ago that was: an idle primary gives no other sign.
STATE = """
SELECT pg_is_in_recovery(), applied,
       CASE WHEN applied AND receiving THEN 0 ELSE extract(epoch FROM clock_timestamp() - since)::float8 END,
       extract(epoch FROM pg_postmaster_start_time())::float8
FROM (SELECT coalesce(pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn(), true) AS applied,
             EXISTS (SELECT 1 FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) AS receiving,
             coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()) AS since) AS now
"""
AWAY, ALONE = "cannot be reached", "follows no primary"
KEPT = 0.5  # seconds for which a state may be reused
Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
_found: dict[str, tuple[float, State]] = {}


@dataclass(frozen=True)
class State:
    """The replication state of a server. ``lag``: seconds behind at most. ``applied``: it has applied all that it
    received.
    """

    follows: bool  # else it was promoted, or never was a replica
    applied: bool
    lag: float
    started: float  # when the server was, by which it is known again

    @property
    def is_near(self) -> bool:
        """Return whether it follows the primary closely enough."""
        return self.follows and self.lag <= settings.REPLICA_LAG

    @property
    def stands_in(self) -> bool:
        """Whether it has all that was acknowledged, as far as anybody can tell: the primary is away."""
        return self.follows and self.applied


def state(ask: Ask) -> State:
    """Return a server's replication state over the connection of ``ask``. One query."""
    return State(*ask(STATE, {})[0])


def state_lately(alias: str, ask: Ask) -> State:
    """Return the state, or one that is at most half a second old."""
    at, found = _found.get(alias, (0.0, None))
    if found is None or time.monotonic() - at > KEPT:
        found = state(ask)
        _found[alias] = (time.monotonic(), found)
    return found


def probe_state(alias: str) -> State | None:
    """Return the state over a connection of its own, for monitors; None if the server cannot be reached."""
    try:
        with psycopg.connect(**connection_settings(alias)) as connection:
            return state(lambda statement, params: connection.execute(statement, params).fetchall())
    except psycopg.Error:
        return None


def what_ails(found: State | None) -> str:
    """Return the fault of a server in words that reveal nothing to strangers; empty without a fault.

    The primary itself may be named among the replicas, as the one that it will be when another is promoted.
    """
    if found is None:
        return AWAY
    if not found.follows:
        primary = probe_state(DEFAULT_DB_ALIAS)
        return "" if primary is not None and primary.started == found.started else ALONE
    return "" if found.lag <= settings.REPLICA_LAG else f"{found.lag:.0f} s behind"


def may_stand_in(why: str) -> bool:
    """Return whether a replica with this fault may still answer reads while the primary is away."""
    return why not in {AWAY, ALONE}


# People who wrote lately, or got events of others' writes: they read from the primary until every replica has it.

MARGIN = 3.0  # seconds beside a replica's lag: the clocks of hosts differ, and its state is kept for some


def pin_to_primary(person: int) -> None:
    """Have this person read from the primary for as long as a replica may lack what there is now."""
    if not settings.REPLICAS:
        return
    try:
        cache.set(_key(person), True, settings.REPLICA_LAG + MARGIN)
    except (DatabaseError, InterfaceError) as error:  # the write itself was acknowledged
        logger.warning("A person was not pinned: %s", type(error.__cause__ or error).__name__)


def is_pinned(person: int) -> bool:
    """Return whether this person reads from the primary. One query of it."""
    return cache.get(_key(person)) is not None


def _key(person: int) -> str:
    return f"pinned:{person}"


# Asking a replica in the primary's place: within the block Django's usual connection is one to it.

T = TypeVar("T")
_turns = count()


def read(person: int, ask: Callable[[], T]) -> T:
    """Return the result of ``ask``, on a replica that is near, or on the primary if this person wrote lately.

    Only in requests that only read, and outside of transactions. ``ask`` writes nothing, gives nothing lazy, and is
    asked once more where a replica fails. Costs a query of the primary, and now and then one of the replica, too.
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
    """Return whether queries here and now go to a replica."""
    return here.usual is not None


def stands_in() -> bool:
    """Whether a replica answers this request for a primary that is away: nothing can be written."""
    return here.stands_in


@contextmanager
def on_primary() -> Iterator[None]:
    """Use the primary within the block, for writes that go with reading. While a replica stands in, nothing is
    written.
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
    """Let a request that only reads use replicas: ``read`` may choose one, and one answers all of it while the primary
    is away.
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
    """Return the replicas that can be reached, starting with another one each time."""
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
