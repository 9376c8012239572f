"""Errors of the database and of a full disk, answered with 503 and Retry-After instead of 500."""

from __future__ import annotations

import errno
import logging

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Unavailable

logger = logging.getLogger(__name__)
NO_SPACE = "No space left on device"  # as Postgres says when it cannot accept a connection
_AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


class ReadOnly(Unavailable):
    """The database takes no writes: a standby, an operator's ``default_transaction_read_only``."""

    default_message = later(
        "Nothing can be changed at the moment: the database is read-only. Try again later."
    )
    retry_after = 30


class DiskFull(Unavailable):
    """The database's disk, or this server's own."""

    default_message = later(
        "This was not saved: the server has run out of disk space. What was saved before is "
        "safe. Tell your administrator, and try again when there is room."
    )
    retry_after = 60


class Busy(Unavailable):
    default_message = later("The database is overloaded. Try again in a moment.")


class Collided(Unavailable):
    """A deadlock, or a lock that was waited for too long."""

    default_message = later("Someone else was changing the same thing. Try again.")
    retry_after = 1


# By how Postgres's SQLSTATE begins (its documentation, appendix A); the first that fits counts. What is not here is
# our own mistake, and a 500: a limit of a statement (54), a transaction that failed before (25P02).
_BY_SQLSTATE: dict[str, type[Unavailable]] = {
    "25006": ReadOnly,
    "25P03": Unavailable,  # idle for too long within a transaction: the server hung up
    "53100": DiskFull,
    "53": Busy,  # no memory, too many connections
    "57014": Busy,  # its statement_timeout
    "57": Unavailable,  # shut down, crashed, starting
    "58": Unavailable,  # its disk fails
    "08": Unavailable,
    "40": Collided,
    "55P03": Collided,
}


def trouble_of(error: BaseException | None) -> Unavailable | None:
    """Return the error to answer with, if the database or a full disk caused it; the cause is logged.
    None for others.

    Some are psycopg's own: Django wraps none that comes as a cursor is closed, such as that of a form's choices.
    """
    if is_disk_full(error):
        logger.error("The disk is full: %s", error)
        return DiskFull()
    if not isinstance(error, DatabaseError | InterfaceError | psycopg.Error):
        return None
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    state = getattr(cause, "sqlstate", None)
    if state is None:  # no query was sent: it is away, or the pool had no connection in time
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
    """Return whether an error means a full disk, including Python's own wording for temporary files."""
    return isinstance(error, OSError) and (
        error.errno in {errno.ENOSPC, errno.EDQUOT} or "No usable temporary directory" in str(error)
    )


def refuse_writes(*, ask: bool = False) -> None:
    """Raise ReadOnly if this connection could not write. Costs nothing: the server says so by itself (since 14).

    With ``ask`` one query finds out whether the running transaction is read-only, too.
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
