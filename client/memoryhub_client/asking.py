"""Sending the requests of calls, retrying them, and reading the responses.

Each rule is written once, as a coroutine that waits only through ``waiting.py``. It runs on an event loop, or with
``Blocks`` to its end in one step.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import httpx2

from memoryhub_client.errors import ApiError, ConnectionLost, error_in
from memoryhub_client.types import Event, Page
from memoryhub_client.waiting import Awaits, Blocks

T = TypeVar("T")
ID = re.compile(r"[A-Za-z0-9_-]+")
COME_AGAIN = {429, 502, 503, 504}
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 60.0  # seconds


@dataclass(frozen=True)
class Call(Generic[T]):
    """An operation of the OpenAPI schema, with its request.

    ``once`` is the Idempotency-Key of a request that creates or edits something, ``seen`` the ETag for ``If-Match``.
    ``header`` names a response header to return instead of the body.
    """

    operation: str
    method: str
    path: str
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    file: tuple[str, bytes] | None = None
    once: str = ""
    seen: str = ""
    only_reads: bool = False
    header: str = ""

    @property
    def address(self) -> str:
        """Return the path with its ids.

        Raises ValueError if an id has characters other than letters, digits, ``_`` and ``-``: a slash could lead to
        another route.
        """
        for name, value in self.ids.items():
            if not ID.fullmatch(value):
                raise ValueError(f"{name} is not an id: {value!r}")
        return self.path.format_map(self.ids)

    @property
    def headers(self) -> dict[str, str]:
        named = {"Idempotency-Key": self.once, "If-Match": self.seen}
        return {name: value for name, value in named.items() if value}

    @property
    def may_be_done_twice(self) -> bool:
        """Return whether the request may be sent again when it is unknown whether the server processed it."""
        if self.method == "POST" or self.once:
            return bool(self.once) or self.only_reads
        return not self.seen  # the ETag would be stale if the first request was processed


def made_once(name: str | None) -> str:
    """Return the caller's Idempotency-Key, or a new one."""
    return name or str(uuid4())


@dataclass(frozen=True)
class Asking:
    """Sender of one client's calls. ``retries`` is the maximum number of retries of a call."""

    waiting: Blocks | Awaits
    retries: int

    async def answer(self, call: Call[Any], *, stream: bool = False) -> httpx2.Response:
        """Send a call and return its response, after retries if necessary.

        Raises ApiError or ConnectionLost if the call may not be retried or no retry is left.
        """
        may_be_done = False
        for left in range(self.retries, -1, -1):
            pause = FIRST_PAUSE * 2 ** (self.retries - left) * random.uniform(1, 1.5)  # noqa: S311  # no secret
            try:
                answer = await self.waiting.send(self._request(call), stream=stream)
            except httpx2.TransportError as error:
                never_sent = isinstance(error, httpx2.ConnectError)
                if not left or not (never_sent or call.may_be_done_twice):
                    raise lost(error) from error
                may_be_done |= not never_sent
            else:
                is_gone = may_be_done and call.method == "DELETE" and answer.status_code == 404
                if answer.is_success or is_gone:
                    return answer
                refused = error_in(answer)
                if not left or not _is_worth_asking_again(call, refused):
                    raise refused
                pause = max(pause, refused.retry_after or 0)
            await self.waiting.pause(pause)
        raise AssertionError("the last time returns or raises")

    async def read(self, call: Call[T]) -> T:
        """Send a call and return the parsed body of the response, or the header that the call names."""
        answer = await self.answer(call)
        if call.header:
            return cast(T, answer.headers[call.header])
        try:
            return cast(T, answer.json() if answer.is_success and answer.content else None)
        except ValueError:  # the URL is not MemoryHub's
            raise error_in(answer) from None

    async def all(self, call: Call[Page[T]]) -> AsyncGenerator[T, None]:
        """Yield the items of all pages. Each page is requested when the one before has been consumed."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.read(replace(call, query={**call.query, "cursor": cursor}) if cursor else call)
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]

    async def stream(self, call: Call[Event]) -> AsyncGenerator[Event, None]:
        answer, events = await self.answer(call, stream=True), Events()
        try:
            async for line in self.waiting.lines(answer):
                for event in events.of(line):
                    yield event
        except httpx2.TransportError as error:
            raise lost(error) from error
        finally:
            await self.waiting.close(answer)

    def _request(self, call: Call[Any]) -> httpx2.Request:
        return self.waiting.http.build_request(
            call.method,
            call.address,
            params=call.query,
            json=call.body,
            files={"file": call.file} if call.file else None,
            headers=call.headers | self._of_the_session(call.method),
        )

    async def typed(self, page: str, **form: str) -> httpx2.Response:
        """Send a form of a page, as a browser does.

        Raises ApiError for an error response other than 400, and ConnectionLost if no response was received.
        """
        headers = self._of_the_session("POST")
        form["csrfmiddlewaretoken"] = headers.get("X-CSRFToken", "")
        request = self.waiting.http.build_request("POST", page, data=form, headers=headers)
        try:
            done = await self.waiting.send(request, stream=False)
        except httpx2.TransportError as error:
            raise lost(error) from error
        if done.is_error and done.status_code != 400:  # 400 is the form with its errors
            raise error_in(done)
        return done

    def _of_the_session(self, method: str) -> dict[str, str]:
        """Return the CSRF headers that a write in a session needs."""
        token = self.waiting.http.cookies.get("csrftoken")
        if method == "GET" or not token:
            return {}
        return {"X-CSRFToken": token, "Referer": str(self.waiting.http.base_url)}


def lost(error: httpx2.TransportError) -> ConnectionLost:
    return ConnectionLost(str(error) or type(error).__name__)


def _is_worth_asking_again(call: Call[Any], error: ApiError) -> bool:
    if (error.retry_after or 0) > LONGEST_PAUSE:
        return False
    # 429: not processed; idempotency_running: the first request is still being processed
    if error.code == "idempotency_running" or error.status == 429:
        return True
    return error.status in COME_AGAIN and call.may_be_done_twice


class Events:
    """Parser of server-sent events."""

    def __init__(self) -> None:
        self._name = ""

    def of(self, line: str) -> Iterator[Event]:
        """Yield the event that this line completes, if any. MemoryHub sends one line of data per event."""
        if line.startswith("event: "):
            self._name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield {"event": self._name, "data": json.loads(line.removeprefix("data: "))}
