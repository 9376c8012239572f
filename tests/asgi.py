"""An ASGI client that drives the application as a server does, so that a test can read a stream and disconnect."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from memoryhub.asgi import django_application

CSRF_TOKEN = "a" * 32


class Exchange:
    """A POST of JSON. ``events`` are read one by one; ``hang_up`` closes the connection from the client's side."""

    def __init__(self, path: str, body: Any, cookies: str, headers: Mapping[str, str]) -> None:
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [
                (b"host", b"localhost"),
                (b"content-type", b"application/json"),
                (b"cookie", f"{cookies}; csrftoken={CSRF_TOKEN}".encode()),
                (b"x-csrftoken", CSRF_TOKEN.encode()),
            ],
            "server": ("localhost", 80),
        }
        more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self.scope["headers"].extend(more)  # type: ignore[attr-defined]
        payload = json.dumps(body).encode()
        self.scope["headers"].append((b"content-length", str(len(payload)).encode()))  # type: ignore[attr-defined]
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": payload, "more_body": False})
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._rest = b""
        self._ended = False
        self.task = asyncio.create_task(
            django_application(self.scope, self._incoming.get, self._outgoing.put)
        )

    async def start(self) -> tuple[int, dict[str, str]]:
        message = await asyncio.wait_for(self._outgoing.get(), 10)
        headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        return message["status"], headers

    async def event(self) -> tuple[str, Any] | None:
        """Return the next server-sent event as its name and data, or None at the end."""
        while b"\n\n" not in self._rest:
            if self._ended:
                return None
            message = await asyncio.wait_for(self._outgoing.get(), 10)
            self._rest += message.get("body", b"")
            self._ended = not message.get("more_body", False)
        block, self._rest = self._rest.split(b"\n\n", 1)
        name, data = block.decode().split("\n")
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    async def events(self) -> list[tuple[str, Any]]:
        """Return all remaining events."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    async def hang_up(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})
        await asyncio.wait_for(self.task, 10)


@asynccontextmanager
async def posted(
    path: str, body: Any, cookies: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Exchange]:
    exchange = Exchange(path, body, cookies, headers or {})
    try:
        yield exchange
    finally:
        exchange.task.cancel()
        await asyncio.gather(exchange.task, return_exceptions=True)
