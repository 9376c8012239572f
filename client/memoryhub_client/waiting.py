"""Sending and sleeping, either blocking or on an event loop, with one interface for ``asking.py``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2


class Blocks:
    """Blocking HTTP. The coroutines never suspend, so that a caller can run them without an event loop."""

    def __init__(self, **options: Any) -> None:
        self.http = httpx2.Client(**options)

    async def send(self, request: httpx2.Request, *, stream: bool) -> httpx2.Response:
        answer = self.http.send(request, stream=stream)
        if stream and not answer.is_success:
            answer.read()
        return answer

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # no event loop runs it

    async def lines(self, answer: httpx2.Response) -> AsyncIterator[str]:
        for line in answer.iter_lines():
            yield line

    async def close(self, what: httpx2.Response | None = None) -> None:
        (what or self.http).close()


class Awaits:
    """Asynchronous HTTP on the event loop."""

    def __init__(self, **options: Any) -> None:
        self.http = httpx2.AsyncClient(**options)

    async def send(self, request: httpx2.Request, *, stream: bool) -> httpx2.Response:
        answer = await self.http.send(request, stream=stream)
        if stream and not answer.is_success:
            await answer.aread()
        return answer

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def lines(self, answer: httpx2.Response) -> AsyncIterator[str]:
        return answer.aiter_lines()

    async def close(self, what: httpx2.Response | None = None) -> None:
        await (what or self.http).aclose()
