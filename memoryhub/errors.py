"""Domain errors, each with a code and an HTTP status, and the conversion of database errors to them."""

import errno
import logging
import math
from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext


class DomainError(Exception):
    """A request that cannot be fulfilled. ``message`` is shown to the user."""

    status = 400
    code = "error"
    default_message: str | Promise = later("That did not work.")
    names_fields = True  # without a message, the message is composed of the fields' messages
    retry_after: int | None = None  # seconds until the request may succeed

    def __init__(
        self,
        message: str | Promise = "",
        *,
        code: str | None = None,
        fields: Mapping[str, str | Promise] | None = None,
    ) -> None:
        if not message and fields and type(self).names_fields:
            message = " ".join(f"{name}: {str(text).removesuffix('.')}." for name, text in fields.items())
        self.message = str(message or self.default_message)
        super().__init__(self.message)
        self.code = code or type(self).code
        self.fields = {name: str(text) for name, text in (fields or {}).items()}

    @property
    def for_all(self) -> str:
        """Return the text that may be stored where other users read it. ``message`` is only for the caller."""
        return self.message

    def body(self) -> dict[str, Any]:
        """Return the API's error body: ``{error: {code, message, fields?}}``."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.fields:
            error["fields"] = self.fields
        return {"error": error}

    def headers(self) -> dict[str, str]:
        """Return extra headers for the HTTP response of this error."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class Malformed(DomainError):
    status, code = 400, "malformed"
    default_message = later("The request could not be read.")


class Forbidden(DomainError):
    status, code = 403, "forbidden"
    default_message = later("You can see this, but you cannot change it.")


class NotFound(DomainError):
    status, code = 404, "not_found"
    default_message = later("This does not exist, or you do not have access to it.")


class Conflict(DomainError):
    status, code = 409, "conflict"
    default_message = later("Someone else has changed this. Load it again, then decide.")


class TooLarge(DomainError):
    status, code = 413, "too_large"
    default_message = later("That is too large.")


class Invalid(DomainError):
    """A field has an invalid value. ``fields`` maps the field's name to a message."""

    status, code = 422, "invalid"
    default_message = later("A field is not valid.")


class UnreadReply(DomainError):
    """A model's reply is not the expected JSON. Only counted in metrics, never raised."""

    status, code = 422, "unread"
    default_message = later("The model's reply could not be read.")


class SecretRefused(Invalid):
    """The text looks like a credential, which is never part of the error. ``kind`` names its type, only for metrics."""

    code = "secret"
    names_fields = False
    default_message = later(
        "This looks like a password or key, so it was not stored. Remove it and try again."
    )

    def __init__(self, *, fields: Mapping[str, str] | None = None, kind: str = "") -> None:
        super().__init__(fields=fields)
        self.kind = kind


class Sensitive(SecretRefused):
    """The text contains a private number, such as a card number. The user may confirm it to store it anyway."""

    code = "sensitive"
    default_message = later(
        "This looks like a personal number, such as a card number or a PIN, so it was not saved. "
        "Confirm to save it anyway."
    )


class TooManyRequests(DomainError):
    """A rate limit is exceeded. ``retry_after`` is the number of seconds until the next request is allowed."""

    status, code = 429, "too_many_requests"

    def __init__(self, *, retry_after: int) -> None:
        self.retry_after = retry_after
        seconds = _("%s s") % retry_after if retry_after > 1 else _("a second")
        when = _("a minute") if retry_after > 45 else seconds
        if retry_after > 3600:
            hours = math.ceil(retry_after / 3600)
            when = ngettext("%s hour", "%s hours", hours) % hours
        super().__init__(
            _("Too many requests at once. Try again in %s; what you typed is still there.") % when
        )


class Unavailable(DomainError):
    status, code = 503, "unavailable"
    default_message = later("Part of the system is not answering. Try again in a moment.")
    retry_after = 5


# Database errors and a full disk become responses with status 503 and Retry-After.

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
    """Two transactions collided, so that one got a deadlock or a lock timeout."""

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
    """Log a database failure or a full disk, and return the error to respond with. Return None for other errors.

    Also handles psycopg's own errors, because Django does not wrap those that are raised while a cursor is closed.
    """
    no_folder = "No usable temporary directory"  # Python's message if the disk is full
    if isinstance(error, OSError) and (
        error.errno in {errno.ENOSPC, errno.EDQUOT} or no_folder in str(error)
    ):
        logger.error("The disk is full: %s", error)
        return DiskFull()
    if not isinstance(error, DatabaseError | InterfaceError | psycopg.Error):
        return None
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    state = getattr(cause, "sqlstate", None)
    if state is None:  # no query was sent: the server is unavailable, or the pool timed out
        error_class = Unavailable if isinstance(error, _AWAY) else None
        if error_class and NO_SPACE in str(error):
            error_class = DiskFull
    else:
        error_class = next((kind for start, kind in _BY_SQLSTATE.items() if state.startswith(start)), None)
    if error_class is None:
        return None
    logger.error("The database failed: %s %s", type(cause or error).__name__, state or "")
    return error_class()


def refuse_writes(*, ask: bool = False) -> None:
    """Raise ReadOnly if Postgres has reported that it takes no writes, or if a query, ``ask``, shows it."""
    connection.ensure_connection()
    status_of = connection.connection.info.parameter_status
    if "on" in map(status_of, ("default_transaction_read_only", "in_hot_standby")):
        raise ReadOnly
    if ask:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            if cursor.fetchone() == ("on",):
                raise ReadOnly
