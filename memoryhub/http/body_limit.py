"""Limit of request bodies, needed because Django writes a body to disk before it authenticates the user."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from django.utils import translation
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import DiskFull, DomainError, trouble_of
from memoryhub.http.middleware import language_at

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class BodyTooLarge(DomainError):
    status, code = 413, "too_large"
    default_message = later("The request is too large.")


@dataclass
class BodyLimit:
    """An ASGI middleware that rejects bodies of more than ``most`` bytes, if possible by Content-Length.

    It also sends the error response when a body does not fit on the disk. A proxy must limit slow clients and long
    headers (deploy/haproxy).
    """

    application: Application
    most: int

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        read, is_whole = 0, scope["type"] != "http"

        async def limited() -> Message:
            nonlocal read, is_whole
            message = await receive()
            read += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            return {"type": "http.disconnect"} if read > self.most else message

        length = dict(scope["headers"]).get(b"content-length", b"") if not is_whole else b""
        if length.isdigit() and int(length[:20]) > self.most:
            await _refuse(scope, send, BodyTooLarge)
            return
        try:
            await self.application(scope, limited, send)
        except OSError as error:
            if trouble_of(error) is None:
                raise
            while not is_whole:  # most clients read the response only after they have sent the whole body
                await limited()
            await _refuse(scope, send, DiskFull)
        if read > self.most:  # the application received a disconnect and sent no response
            await _refuse(scope, send, BodyTooLarge)


async def _refuse(scope: Any, send: Send, kind: type[DomainError]) -> None:
    """Send an error response and close the connection, so that the client stops sending the body."""
    accepted = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
    with translation.override(language_at(scope["path"], accepted)):
        error = kind()
        body = json.dumps(error.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers().items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
