"""How much of a reply is read, and for how long, from a server that nobody here answers for."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

MOST_BYTES = 64 * 1024 * 1024  # of one reply; a streamed token takes some 300
PLAIN = {"accept-encoding": "identity"}  # a packed reply may be a thousand times as long when it is unpacked


class ReplyWithoutEnd(httpx2.ReadError):
    """More than any answer needs."""


def bound(response: httpx2.Response) -> None:
    """For blocking clients, which wait for whole replies: its body has to be there within the call's time-out."""
    _require_plain(response)
    limit = response.request.extensions.get("timeout", {}).get("read")
    response.stream = _Bounded(response.stream, None if limit is None else time.monotonic() + limit)


async def bound_stream(response: httpx2.Response) -> None:
    """For coroutines, which can be cancelled however long it takes."""
    _require_plain(response)
    response.stream = _AsyncBounded(response.stream)


def _require_plain(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
        raise httpx2.DecodingError("A packed reply was not asked for.", request=response.request)


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, inner: Any, ends: float | None) -> None:
        self._inner, self._ends = inner, ends

    def __iter__(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for part in self._inner:
            left -= len(part)
            if left < 0:
                raise ReplyWithoutEnd("The reply has no end.")
            if self._ends is not None and time.monotonic() > self._ends:
                raise httpx2.ReadTimeout("The reply took too long to come.")
            yield part

    def close(self) -> None:
        self._inner.close()


class _AsyncBounded(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for part in self._inner:
            left -= len(part)
            if left < 0:
                raise ReplyWithoutEnd("The reply has no end.")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
