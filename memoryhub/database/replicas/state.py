"""How far a replica is, as it says itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from memoryhub.database.replicas.servers import connection_settings

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
KEPT = 0.5  # seconds for which what was found is good enough
Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
_found: dict[str, tuple[float, State]] = {}


@dataclass(frozen=True)
class State:
    """``lag``: seconds that it may be behind. ``applied``: it has all that it received of the primary's log."""

    follows: bool  # else it was promoted, or never was a replica
    applied: bool
    lag: float
    started: float  # when the server was, by which it is known again

    @property
    def is_near(self) -> bool:
        """Whether it follows, and not from too far behind."""
        return self.follows and self.lag <= settings.REPLICA_LAG

    @property
    def stands_in(self) -> bool:
        """Whether it has all that was acknowledged, as far as anybody can tell: the primary is away."""
        return self.follows and self.applied


def state(ask: Ask) -> State:
    """By a connection that ``ask`` has. One query."""
    return State(*ask(STATE, {})[0])


def state_lately(alias: str, ask: Ask) -> State:
    """The same, or as it was found a moment ago."""
    at, found = _found.get(alias, (0.0, None))
    if found is None or time.monotonic() - at > KEPT:
        found = state(ask)
        _found[alias] = (time.monotonic(), found)
    return found


def probe_state(alias: str) -> State | None:
    """By a connection of its own, for monitors. None: it cannot be reached."""
    try:
        with psycopg.connect(**connection_settings(alias)) as connection:
            return state(lambda statement, params: connection.execute(statement, params).fetchall())
    except psycopg.Error:
        return None


def what_ails(found: State | None) -> str:
    """What is wrong with it, in words that tell a stranger nothing of use; empty when nothing is.

    The primary itself may be named among the replicas, as the one that it will be when another is promoted.
    """
    if found is None:
        return AWAY
    if not found.follows:
        primary = probe_state(DEFAULT_DB_ALIAS)
        return "" if primary is not None and primary.started == found.started else ALONE
    return "" if found.lag <= settings.REPLICA_LAG else f"{found.lag:.0f} s behind"


def may_stand_in(why: str) -> bool:
    """Whether one with this trouble still answers who only reads, while the primary is away."""
    return why not in {AWAY, ALONE}
