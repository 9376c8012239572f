"""Conversion of database errors and a full disk to responses with status 503 and Retry-After."""

from __future__ import annotations

import errno
import logging

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Unavailable

logger = logging.getLogger(__name__)
NO_SPACE = "No space left on device"  # Postgres's message when it cannot accept a connection
_AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


class ReadOnly(Unavailable):
    """The database accepts no writes: it is a standby, or ``default_transaction_read_only`` is set."""

    default_message = later(
        "Nothing can be changed at the moment: the database is read-only. Try again later."
    )
    retry_after = 30


class DiskFull(Unavailable):
    """The disk of the database or of this server is full."""

    default_message = later(
        "This was not saved: the server has run out of disk space. What was saved before is "
        "safe. Tell your administrator, and try again when there is room."
    )
    retry_after = 60


class Busy(Unavailable):
    default_message = later("The database is overloaded. Try again in a moment.")


class Collided(Unavailable):
    """A deadlock, or a lock timeout."""

    default_message = later("Someone else was changing the same thing. Try again.")
    retry_after = 1


# By prefix of Postgres's SQLSTATE (appendix A of its documentation); the first match counts. Other states are errors of
# our code and give status 500, for example a statement limit (54) or an already failed transaction (25P02).
_BY_SQLSTATE: dict[str, type[Unavailable]] = {
    "25006": ReadOnly,
    "25P03": Unavailable,  # idle in a transaction for too long, so the server disconnected
    "53100": DiskFull,
    "53": Busy,  # no memory, too many connections
    "57014": Busy,  # statement timeout
    "57": Unavailable,  # shut down, crashed, starting
    "58": Unavailable,  # I/O errors
    "08": Unavailable,
    "40": Collided,
    "55P03": Collided,
}


def trouble_of(error: BaseException | None) -> Unavailable | None:
    """Return the error to respond with if the database or a full disk caused ``error``, and log the cause; otherwise
    None.

    Errors that are raised while a cursor is closed, for example of a form's choices, are psycopg's own, because Django
    does not wrap them.
    """
    if is_disk_full(error):
        logger.error("The disk is full: %s", error)
        return DiskFull()
    if not isinstance(error, DatabaseError | InterfaceError | psycopg.Error):
        return None
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    state = getattr(cause, "sqlstate", None)
    if state is None:  # no query was sent: the server is unavailable, or the pool timed out
        found = Unavailable if isinstance(error, _AWAY) else None
        if found and NO_SPACE in str(error):
            found = DiskFull
    else:
        found = next((kind for start, kind in _BY_SQLSTATE.items() if state.startswith(start)), None)
    if found is None:
        return None
    logger.error("The database failed: %s %s", type(cause or error).__name__, state or "")
    return found()


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error means a full disk, including Python's error about temporary files."""
    return isinstance(error, OSError) and (
        error.errno in {errno.ENOSPC, errno.EDQUOT} or "No usable temporary directory" in str(error)
    )


def refuse_writes(*, ask: bool = False) -> None:
    """Raise ReadOnly if this connection cannot write. No query, because the server reports its state (since version
    14).

    ``ask`` makes one query to detect a read-only transaction too.
    """
    connection.ensure_connection()
    info = connection.connection.info
    if "on" in (
        info.parameter_status("default_transaction_read_only"),
        info.parameter_status("in_hot_standby"),
    ):
        raise ReadOnly
    if ask:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            if cursor.fetchone() == ("on",):
                raise ReadOnly
