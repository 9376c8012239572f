"""A request of Django's as ASGI applications of libraries read it: its body, and of its headers those named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from django.http import HttpRequest

Receive = Callable[[], Awaitable[Any]]


def scope_of(request: HttpRequest, headers: Iterable[str]) -> dict[str, Any]:
    given = {name.lower(): value for name, value in request.headers.items()}
    passed = [(name.encode(), given[name].encode("latin-1", "replace")) for name in headers if name in given]
    return {
        "type": "http",
        "method": request.method,
        "path": request.path_info,
        "query_string": b"",
        "headers": passed,
        "http_version": "1.1",
        "scheme": "http",
    }


def receiver_of(request: HttpRequest) -> Receive:
    came = iter([{"type": "http.request", "body": request.body, "more_body": False}])

    async def receive() -> Any:
        message = next(came, None)
        return await asyncio.Future() if message is None else message  # its client stays until it is answered

    return receive
