"""No request may send more than the largest upload: Django writes a body to the disk before asking who sent it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]
ANSWER = json.dumps({"error": {"code": "too_large", "message": "This request is too large."}}).encode()


class BodyLimit:
    """Around an ASGI application: 413 to what says by itself that it has more than ``most`` bytes.

    What does not say so is hung up on once it has sent that much.
    """

    def __init__(self, application: Application, *, most: int) -> None:
        self.application, self.most = application, most

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name.lower() == b"content-length"), b"0")
        if length.isdigit() and int(length[:20]) > self.most:
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 413, "headers": headers})
            await send({"type": "http.response.body", "body": ANSWER})
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            return message if read <= self.most else {"type": "http.disconnect"}

        await self.application(scope, counted, send)
