"""Locks across all processes and hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from memoryhub.environment import libpq_settings

_LOCK = "SELECT pg_try_advisory_lock(hashtext(%s), %s)"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext(%s), %s)"


@contextmanager
def alone(what: str, number: int = 0) -> Iterator[bool]:
    """Try to acquire a lock for the block, and yield whether that succeeded. A killed process releases it.

    The lock has its own connection, because the queue closes a job's connection that is older than a minute when the
    job queues another. Costs one connect and two queries.
    """
    key = (what, number % 2**31)
    with psycopg.connect(**_own_session(), autocommit=True) as own:
        row = own.execute(_LOCK, key).fetchone()
        is_alone = bool(row and row[0])
        try:
            yield is_alone
        finally:
            if is_alone:
                with suppress(psycopg.Error):  # the connection was lost, which released the lock
                    own.execute(_UNLOCK, key)  # releases it at once; closing the connection takes a moment


def _own_session() -> dict[str, Any]:
    """Return the settings of a direct connection, because a pooler shares sessions."""
    reached = settings.LISTEN_AT or libpq_settings(connection.settings_dict)
    return {**reached, "application_name": "memoryhub lock"}


def release_connection() -> None:
    """Return this thread's connection to the pool while it is idle, for example in a stream.

    Keep it in a transaction.
    """
    if not connection.in_atomic_block:
        connection.close()
