"""Locks for what one process at a time may do, on any host."""

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
    """Take a lock for the block, and yield whether this process has it. A killed process frees it.

    Held by a connection of its own: the queue closes a job's connection that is older than a minute as the job queues
    another. Costs a connect.
    """
    key = (what, number % 2**31)
    with psycopg.connect(**_own_session(), autocommit=True) as own:
        row = own.execute(_LOCK, key).fetchone()
        is_alone = bool(row and row[0])
        try:
            yield is_alone
        finally:
            if is_alone:
                with suppress(psycopg.Error):  # the connection was cut: it is free
                    own.execute(_UNLOCK, key)  # at once; a closed connection frees it a moment later


def _own_session() -> dict[str, Any]:
    """Return the settings of a connection past a pooler, which would share sessions."""
    reached = settings.LISTEN_AT or libpq_settings(connection.settings_dict)
    return {**reached, "application_name": "memoryhub lock"}


def release_connection() -> None:
    """Return this thread's connection to the pool while it idles, as a stream does. Within a transaction it stays."""
    if not connection.in_atomic_block:
        connection.close()
