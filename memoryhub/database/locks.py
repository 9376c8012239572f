"""What one process at a time may do, wherever it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_LOCK = "SELECT pg_try_advisory_lock(hashtext(%s), %s)"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext(%s), %s)"


@contextmanager
def alone(what: str, number: int = 0) -> Iterator[bool]:
    """Whether this process is the only one at it, held until the block ends; a killed one frees it by itself."""
    key = (what, number % 2**31)
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, key)
        is_alone = bool(cursor.fetchone()[0])
    try:
        yield is_alone
    finally:
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute(_UNLOCK, key)


def release_connection() -> None:
    """What idles, such as a stream, must not hold a connection of the pool. Within a transaction it stays."""
    if not connection.in_atomic_block:
        connection.close()
