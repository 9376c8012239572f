"""Exceptions of the client."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2


class MemoryHubError(Exception):
    """Everything that this client raises by itself."""


class ConnectionLost(MemoryHubError):
    """No answer came. The request may have been done, unless it never connected."""


class ApiError(MemoryHubError):
    """MemoryHub said no. ``code`` is for programs, ``message`` for people, ``fields`` says what is wrong with each.

    ``retry_after`` is in seconds, where the answer names them.
    """

    def __init__(
        self, status: int, code: str, message: str, fields: Mapping[str, str], retry_after: float | None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message
        self.fields, self.retry_after = dict(fields), retry_after


def error_in(answer: httpx2.Response) -> ApiError:
    """An error answer. One that is not MemoryHub's (a proxy's page) has the code ``http_502``."""
    try:
        said = answer.json()["error"]
        return ApiError(
            answer.status_code, said["code"], said["message"], said.get("fields", {}), seconds_in(answer)
        )
    except (ValueError, KeyError, TypeError):
        code = f"http_{answer.status_code}"
        return ApiError(answer.status_code, code, answer.reason_phrase, {}, seconds_in(answer))


def seconds_in(answer: httpx2.Response) -> float | None:
    """``Retry-After`` where it is a number of seconds, the only form that MemoryHub sends."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None
