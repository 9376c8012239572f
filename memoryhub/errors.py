"""Domain errors. Each knows its code and HTTP status; views turn them into a body or a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext


class DomainError(Exception):
    """A request that cannot be done. ``message`` is shown to people."""

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
        """Return the text to store where others read it: ``message`` is for the caller alone."""
        return self.message

    default_message: str | Promise = later("That did not work.")
    names_fields = True  # without a message of its own the error says what its fields say

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
    """A field has a value that is not allowed; ``fields`` names it and says what is allowed."""

    status, code = 422, "invalid"
    default_message = later("A field is not valid.")


class UnreadReply(DomainError):
    """A model's reply is not the expected JSON. Counted, never raised."""

    status, code = 422, "unread"
    default_message = later("The model's reply could not be read.")


class SecretRefused(Invalid):
    """The text looks like a credential. The secret itself is never part of the error.

    ``kind`` names the sort of credential, for counting: the person reads no more than that it is one.
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
    """The text holds a number of somebody's own. A person may have it stored all the same, if they say so twice."""

    code = "sensitive"
    default_message = later(
        "This looks like a private number, such as a card number or a PIN, so it has not been stored. "
        "Confirm it to store it anyway."
    )


class TooManyRequests(DomainError):
    """A rate limit is exceeded. ``retry_after``: seconds until the next request may pass."""

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
