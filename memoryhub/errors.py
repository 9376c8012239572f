"""Domain errors. Each knows its code and HTTP status; the doors turn them into a body or a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class DomainError(Exception):
    """Something the caller asked for cannot be done. ``message`` is fit for a person's eyes."""

    status = 400
    code = "error"

    def __init__(
        self, message: str = "", *, code: str | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        if not message and fields and type(self).names_fields:
            message = " ".join(f"{name}: {text}." for name, text in fields.items())
        self.message = message or self.default_message
        super().__init__(self.message)
        self.code = code or type(self).code
        self.fields = dict(fields or {})

    default_message = "That did not work."
    names_fields = True  # without a message of its own the error says what its fields say

    def body(self) -> dict[str, Any]:
        """The API's error body: ``{error: {code, message, fields?}}``."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.fields:
            error["fields"] = self.fields
        return {"error": error}

    def headers(self) -> dict[str, str]:
        """What an answer over HTTP says beside it."""
        return {}


class Malformed(DomainError):
    status, code = 400, "malformed"
    default_message = "The request could not be read."


class Forbidden(DomainError):
    status, code = 403, "forbidden"
    default_message = "You may look at this, but not change it."


class NotFound(DomainError):
    status, code = 404, "not_found"
    default_message = "There is nothing here, or it is not yours to see."


class Conflict(DomainError):
    status, code = 409, "conflict"
    default_message = "Somebody else changed this in the meantime."


class TooLarge(DomainError):
    status, code = 413, "too_large"
    default_message = "That is too large."


class Invalid(DomainError):
    """A field's value is not allowed; ``fields`` names it and says what is."""

    status, code = 422, "invalid"
    default_message = "A field is not valid."


class SecretRefused(Invalid):
    """The text looks like a credential. The secret itself is never part of the error.

    ``kind`` names the sort of credential, for counting: the person reads no more than that it is one.
    """

    def __init__(self, *, fields: Mapping[str, str] | None = None, kind: str = "") -> None:
        super().__init__(fields=fields)
        self.kind = kind

    code = "secret"
    names_fields = False
    default_message = "This looks like a password or key, so it was not stored. Remove it and try again."


class Sensitive(SecretRefused):
    """The text holds a number of somebody's own. A person may have it stored all the same, if they say so twice."""

    code = "sensitive"
    default_message = (
        "This looks like a number to keep to yourself, such as a card's or a PIN, so it was not stored yet. "
        "Confirm it to have it stored."
    )


class TooManyRequests(DomainError):
    """Over a limit. ``retry_after``: seconds until the next one may pass."""

    status, code = 429, "too_many_requests"

    def __init__(self, *, retry_after: int) -> None:
        self.retry_after = retry_after
        when = "a minute" if retry_after > 45 else f"{retry_after} s" if retry_after > 1 else "a second"
        super().__init__(f"That was a lot at once. Try again in {when}; what you typed is still there.")

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}


class Unavailable(DomainError):
    status, code = 503, "unavailable"
    default_message = "A part of the system is not answering. Try again in a moment."
    retry_after = 5

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}
