"""Requests and answers of a call: sending, retrying, reading.

Every rule is written once, as a coroutine that waits by ``waiting.py`` alone: on an event loop, or blocking, when it is
through at its first step.
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
    """An operation of the schema, with its request.

    ``once`` is the Idempotency-Key of what makes or edits something, ``seen`` the ETag of what is changed,
    ``header`` the one of the answer that is wanted instead of its body.
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
        """The path with its ids. Raises ValueError: one with a slash in it would lead to another route."""
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
        """Whether it may be sent again where nobody knows if it was done."""
        if self.method == "POST" or self.once:
            return bool(self.once) or self.only_reads
        return not self.seen  # what it changed itself would look like somebody else's change


def made_once(name: str | None) -> str:
    """The name of one request that makes something: the caller's own, or a new one."""
    return name or str(uuid4())


@dataclass(frozen=True)
class Asking:
    """The rules, for one client. ``retries``: how often at most a call is sent again."""

    waiting: Blocks | Awaits
    retries: int

    async def answer(self, call: Call[Any], *, stream: bool = False) -> httpx2.Response:
        """The answer to a call, or ApiError or ConnectionLost once it is no use to ask again."""
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
        """Return the data of the answer."""
        answer = await self.answer(call)
        if call.header:
            return cast(T, answer.headers[call.header])
        try:
            return cast(T, answer.json() if answer.is_success and answer.content else None)
        except ValueError:  # the address leads to something else
            raise error_in(answer) from None

    async def all(self, call: Call[Page[T]]) -> AsyncGenerator[T, None]:
        """Yield the items of every page; each is requested when the one before has been read."""
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
        """A form of the pages, as a browser sends it."""
        headers = self._of_the_session("POST")
        form["csrfmiddlewaretoken"] = headers.get("X-CSRFToken", "")
        request = self.waiting.http.build_request("POST", page, data=form, headers=headers)
        try:
            done = await self.waiting.send(request, stream=False)
        except httpx2.TransportError as error:
            raise lost(error) from error
        if done.is_error and done.status_code != 400:  # the form again, with what is wrong
            raise error_in(done)
        return done

    def _of_the_session(self, method: str) -> dict[str, str]:
        """Return the headers that a write with a session needs."""
        token = self.waiting.http.cookies.get("csrftoken")
        if method == "GET" or not token:
            return {}
        return {"X-CSRFToken": token, "Referer": str(self.waiting.http.base_url)}


def lost(error: httpx2.TransportError) -> ConnectionLost:
    return ConnectionLost(str(error) or type(error).__name__)


def _is_worth_asking_again(call: Call[Any], error: ApiError) -> bool:
    if (error.retry_after or 0) > LONGEST_PAUSE:
        return False
    if error.code == "idempotency_running" or error.status == 429:  # not done, or being done under this name
        return True
    return error.status in COME_AGAIN and call.may_be_done_twice


class Events:
    """Server-sent events, from the lines of an answer."""

    def __init__(self) -> None:
        self._name = ""

    def of(self, line: str) -> Iterator[Event]:
        """The event that this line completes, if it does. MemoryHub writes one line of data for each."""
        if line.startswith("event: "):
            self._name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield {"event": self._name, "data": json.loads(line.removeprefix("data: "))}
