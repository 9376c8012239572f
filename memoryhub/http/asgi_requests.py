"""Django's requests as ASGI scopes and messages, for libraries that expect these."""

import asyncio
from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest

from memoryhub.http.body_limit import Receive


def scope_of(request: HttpRequest, headers: Iterable[str]) -> dict[str, Any]:
    passed = [
        (name.encode(), request.headers[name].encode("latin-1", "replace"))
        for name in headers
        if name in request.headers
    ]
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
    messages = [{"type": "http.request", "body": request.body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Future()  # never report a disconnect

    return receive
