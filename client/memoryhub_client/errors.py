"""Exceptions of the client."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2


class MemoryHubError(Exception):
    """Base class of the exceptions that this client raises."""


class ConnectionLost(MemoryHubError):
    """No response was received. The server may have processed the request, unless connecting failed."""


class ApiError(MemoryHubError):
    """An error response: ``code`` for programs, ``message`` for people, ``fields`` with the error of each field.

    ``retry_after`` is in seconds, or None if the response does not have it.
    """

    def __init__(
        self, status: int, code: str, message: str, fields: Mapping[str, str], retry_after: float | None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message
        self.fields, self.retry_after = dict(fields), retry_after


def error_in(answer: httpx2.Response) -> ApiError:
    """Convert an error response to ApiError.

    A response that is not from MemoryHub, such as a proxy's page, gets its status as code: ``http_502``.
    """
    try:
        said = answer.json()["error"]
        return ApiError(
            answer.status_code, said["code"], said["message"], said.get("fields", {}), seconds_in(answer)
        )
    except (ValueError, KeyError, TypeError):
        code = f"http_{answer.status_code}"
        return ApiError(answer.status_code, code, answer.reason_phrase, {}, seconds_in(answer))


def seconds_in(answer: httpx2.Response) -> float | None:
    """Return ``Retry-After`` in seconds, or None. MemoryHub never sends it as a date."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None
