"""A minimal HTTP/1.1 client for load tests on one machine, with a tenth of a real client's CPU cost.

Kept connections, JSON out, the body as bytes back. Only for this project's servers.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

# A second before the server closes an idle connection, so that no request is sent on a closing one
IDLE_SECONDS = 4.0
NOT_THERE = (OSError, EOFError, ValueError)  # a connection that breaks, at any point


class ThinClient:
    def __init__(
        self, port: int, *, host: str = "127.0.0.1", connections: int = 100, patience: float = 30.0
    ) -> None:
        self.host, self.port, self.patience = host, port, patience
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []  # and idle since when
        self._room = asyncio.Semaphore(connections)

    async def ask(
        self, who: str, method: str, path: str, body: Any = None, *, first_event: bool = False
    ) -> tuple[int, bytes]:
        """Send a request; return status and body. ``who`` holds the header lines that authenticate.

        ``first_event`` reads only the beginning of a stream and disconnects. Raises OSError, EOFError, TimeoutError.
        """
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n{who}Content-Length: {len(text)}\r\n"
        async with self._room, asyncio.timeout(self.patience), self._connection() as (reader, writer, keep):
            writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + text)
            status, length = _head(await reader.readuntil(b"\r\n\r\n"))
            if first_event:
                return status, await reader.readuntil(b"\n\n")
            found = b"".join([chunk async for chunk in _chunks(reader)]) if length is None else b""
            if length:
                found = await reader.readexactly(length)
            keep()
            return status, found

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        """A kept connection or a new one; closed afterwards unless ``keep`` was called."""
        while self._idle and not _is_open(*self._idle[-1][:2]):
            self._idle.pop()[2].close()
        if self._idle:
            _, reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self.host, self.port)
        kept = []
        try:
            yield reader, writer, lambda: kept.append(True)
        finally:
            if kept:
                self._idle.append((time.monotonic(), reader, writer))
            else:
                writer.close()


def _is_open(since: float, reader: asyncio.StreamReader) -> bool:
    ended = reader.at_eof() or reader.exception() is not None
    return not ended and time.monotonic() - since < IDLE_SECONDS


def _head(head: bytes) -> tuple[int, int | None]:
    """Return status and length of the body, None for a chunked body."""
    fields = head.lower()
    at = fields.find(b"content-length:")
    return int(head[9:12]), int(fields[at + 15 : fields.index(b"\r\n", at)]) if at >= 0 else None


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
