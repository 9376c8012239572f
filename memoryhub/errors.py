"""Domain errors with code and HTTP status. Views convert them to a response body or a message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext


class DomainError(Exception):
    """A request that cannot be fulfilled. ``message`` is shown to the user."""

    status = 400
    code = "error"

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
        """Return the text to store where other users read it, because ``message`` is only for the caller."""
        return self.message

    default_message: str | Promise = later("That did not work.")
    names_fields = True  # without a message, the message is composed of the fields' messages

    def body(self) -> dict[str, Any]:
        """Return the API's error body: ``{error: {code, message, fields?}}``."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.fields:
            error["fields"] = self.fields
        return {"error": error}

    def headers(self) -> dict[str, str]:
        """Return extra headers for the HTTP response of this error."""
        return {}


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
    """The text looks like a credential. The secret itself is never part of the error.

    ``kind`` names the type of credential for metrics; it is not shown to the user.
    """

    def __init__(self, *, fields: Mapping[str, str] | None = None, kind: str = "") -> None:
        super().__init__(fields=fields)
        self.kind = kind

    code = "secret"
    names_fields = False
    default_message = later(
        "This looks like a password or key, so it was not stored. Remove it and try again."
    )


class Sensitive(SecretRefused):
    """The text contains a private number, such as a card number. The user may confirm it to store it anyway."""

    code = "sensitive"
    default_message = later(
        "This looks like a private number, such as a card number or a PIN, so it has not been stored. "
        "Confirm it to store it anyway."
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

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}


class Unavailable(DomainError):
    status, code = 503, "unavailable"
    default_message = later("Part of the system is not answering. Try again in a moment.")
    retry_after = 5

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}
