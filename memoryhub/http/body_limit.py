"""No request may send more than the largest upload, more slowly than any line, or only half, many at once.

Django writes a body to the disk before asking who sent it, and the server that runs us waits for one without end.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils import translation
from django.utils.translation import gettext_lazy as later

from memoryhub.http import origin
from memoryhub.languages import language_at
from memoryhub.monitoring import metrics

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]
REFUSALS = {
    408: ("timeout", later("The request arrived too slowly and was dropped. Try again.")),
    413: ("too_large", later("The request is too large.")),
    429: (
        "too_many_requests",
        later("Too many requests from your network are still being sent. Try again in a moment."),
    ),
}


@dataclass
class BodyLimit:
    """Around an ASGI application. Bodies are refused before they are read to their end:

    with 413 what says by itself that it has more than ``most`` bytes (what does not say so is hung up on once it has
    sent that much); with 408 what, ``patience`` seconds after its beginning, falls behind ``slowest`` bytes a second;
    with 429 what comes while ``half_sent`` others from its address are being waited for.
    """

    application: Application
    most: int
    patience: float = 20.0
    slowest: int = 4096
    half_sent: int = 100
    waiting: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        length = _header(scope, b"content-length")
        peer, forwarded = (scope.get("client") or [""])[0], _header(scope, b"x-forwarded-for")
        address = origin.counted_as(origin.address_of(peer, forwarded.decode("latin-1")))
        if length.isdigit() and int(length[:20]) > self.most:
            await _refuse(scope, send, 413)
        elif _has_body(scope) and self.waiting[address] >= self.half_sent:
            await _refuse(scope, send, 429)
        else:
            body = _Body(self, receive, address)
            try:
                await self.application(scope, body.receive, send)
            finally:
                body.end()
            if body.refused:  # the application was told that the client is gone, and answered nothing
                await _refuse(scope, send, body.refused)


class _Body:
    """A request's body while it comes in. ``refused``: the status with which it was given up, or 0."""

    def __init__(self, limit: BodyLimit, receive: Receive, address: str) -> None:
        self._limit, self._receive, self._address = limit, receive, address
        self._read, self._began, self._is_coming = 0, asyncio.get_running_loop().time(), True
        self.refused = 0
        limit.waiting[address] += 1

    async def receive(self) -> Message:
        if not self._is_coming:
            return {"type": "http.disconnect"} if self.refused else await self._receive()
        late_at = self._began + self._limit.patience + self._read / self._limit.slowest
        try:
            async with asyncio.timeout_at(late_at):
                message = await self._receive()
        except TimeoutError:
            return self._refuse(408)
        self._read += len(message.get("body", b""))
        if self._read > self._limit.most:
            return self._refuse(413)
        if not message.get("more_body", False):
            self.end()
        return message

    def end(self) -> None:
        """All of it is here, or nobody waits for the rest."""
        if self._is_coming:
            self._is_coming = False
            self._limit.waiting[self._address] -= 1
            if not self._limit.waiting[self._address]:
                del self._limit.waiting[self._address]

    def _refuse(self, status: int) -> Message:
        self.refused = status
        self.end()
        return {"type": "http.disconnect"}


def _has_body(scope: Any) -> bool:
    return _header(scope, b"content-length") not in {b"", b"0"} or bool(_header(scope, b"transfer-encoding"))


def _header(scope: Any, wanted: bytes) -> bytes:
    """All that was said under this name, as one."""
    found = [value for name, value in scope["headers"] if name.lower() == wanted]
    return b",".join(found)


async def _refuse(scope: Any, send: Send, status: int) -> None:
    """Answer, and hang up: the rest of the body is not wanted."""
    code, message = REFUSALS[status]
    accepted = _header(scope, b"accept-language").decode("latin-1")
    with translation.override(language_at(scope["path"], accepted)):
        body = json.dumps({"error": {"code": code, "message": str(message)}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 429:
        metrics.THROTTLED.labels("half-sent requests").inc()
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
