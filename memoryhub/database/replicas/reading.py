"""Asking a replica in the primary's place: within the block Django's usual connection is one to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection, connections

from memoryhub.database import prepared
from memoryhub.database.replicas.here import here
from memoryhub.database.replicas.pinned import is_pinned
from memoryhub.database.replicas.servers import server
from memoryhub.database.replicas.state import State, state, state_lately
from memoryhub.monitoring import metrics

logger = logging.getLogger(__name__)
T = TypeVar("T")
_turns = count()


def read(person: int, ask: Callable[[], T]) -> T:
    """What ``ask`` gives, of a replica that is near, or of the primary where this person wrote lately.

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
                if state_lately(alias, prepared.rows).is_near:
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
    """Whether what is asked here and now goes to a replica."""
    return here.usual is not None


def stands_in() -> bool:
    """Whether a replica answers this request for a primary that is away: nothing can be written."""
    return here.stands_in


@contextmanager
def on_primary() -> Iterator[None]:
    """For the notes that go with reading, which nothing takes while a replica ``stands_in``."""
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
    """A request that only reads: ``read`` may ask replicas, and one answers it wholly while the primary is away."""
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
                if fits(state(prepared.rows)):
                    return alias
        except (DatabaseError, InterfaceError):
            server(alias).check()
    return None


def _in_turn() -> list[str]:
    """The replicas that can be reached, another one first each time."""
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
