"""Who carries the rules of ``asking.py`` out, and how a call becomes a method of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import httpx2

from memoryhub_client.asking import Asking, Call, Events, Flow, lost
from memoryhub_client.types import Event, Page

P = ParamSpec("P")
T = TypeVar("T")


def _options(url: str, key: str, timeout: float) -> dict[str, Any]:
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    return {"base_url": url, "headers": headers, "timeout": timeout}


class Blocking:
    """``timeout`` in seconds; ``retries``: how often at most a call is sent again. Without a key: ``sign_in``."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout: float = 60,
        retries: int = 4,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._http = httpx2.Client(**_options(url, key, timeout), transport=transport)
        self._asking = Asking(self._http, retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def sign_in(self, username: str, password: str) -> None:
        """As in a browser, for what no key may do. Raises ApiError ``not_signed_in``."""
        self._run(self._asking.sign_in(username, password))

    def confirm_password(self, password: str) -> None:
        """Before what wants the password once more: good for five minutes. Raises ApiError ``bad_password``."""
        self._run(self._asking.confirm_password(password))

    def _ask(self, wanted: Call[T]) -> T:
        return self._run(self._asking.read(wanted))

    def _all(self, wanted: Call[Page[T]]) -> Iterator[T]:
        cursor: str | None = ""
        while cursor is not None:
            page = self._run(self._asking.page(wanted, cursor))
            yield from page["items"]
            cursor = page["next_cursor"]

    def _stream(self, wanted: Call[Event]) -> Iterator[Event]:
        answer, events = self._run(self._asking.answer(wanted), stream=True), Events()
        try:
            for line in answer.iter_lines():
                yield from events.of(line)
        except httpx2.TransportError as error:
            raise lost(error) from error
        finally:
            answer.close()

    def _run(self, flow: Flow[T], *, stream: bool = False) -> T:
        try:
            step = next(flow)
            while True:
                if isinstance(step, float):
                    time.sleep(step)
                    step = next(flow)
                    continue
                try:
                    answer = self._http.send(step, stream=stream)
                    if stream and not answer.is_success:
                        answer.read()
                except httpx2.TransportError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            made: T = done.value
            return made


class Asynchronous:
    """As ``Blocking``, on an event loop: lists are ``async for``, the rest is awaited."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout: float = 60,
        retries: int = 4,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx2.AsyncClient(**_options(url, key, timeout), transport=transport)
        self._asking = Asking(self._http, retries)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def sign_in(self, username: str, password: str) -> None:
        await self._run(self._asking.sign_in(username, password))

    async def confirm_password(self, password: str) -> None:
        await self._run(self._asking.confirm_password(password))

    async def _ask(self, wanted: Call[T]) -> T:
        return await self._run(self._asking.read(wanted))

    async def _all(self, wanted: Call[Page[T]]) -> AsyncIterator[T]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._run(self._asking.page(wanted, cursor))
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]

    async def _stream(self, wanted: Call[Event]) -> AsyncIterator[Event]:
        answer, events = await self._run(self._asking.answer(wanted), stream=True), Events()
        try:
            async for line in answer.aiter_lines():
                for event in events.of(line):
                    yield event
        except httpx2.TransportError as error:
            raise lost(error) from error
        finally:
            await answer.aclose()

    async def _run(self, flow: Flow[T], *, stream: bool = False) -> T:
        try:
            step = next(flow)
            while True:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    step = next(flow)
                    continue
                try:
                    answer = await self._http.send(step, stream=stream)
                    if stream and not answer.is_success:
                        await answer.aread()
                except httpx2.TransportError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            made: T = done.value
            return made


class _Method(Generic[P, T]):
    """What says what is asked; as a method of a client it asks."""

    by = "_ask"

    def __init__(self, make: Callable[Concatenate[Any, P], Call[Any]]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def _bound(self, client: Any) -> Callable[P, Any]:
        def ask(*given: P.args, **named: P.kwargs) -> Any:
            return getattr(client, self.by)(self.make(client, *given, **named))

        ask.__doc__ = self.__doc__
        return ask


class call(_Method[P, T]):  # a decorator
    """One question, one answer."""

    def __init__(self, make: Callable[Concatenate[Any, P], Call[T]]) -> None:
        super().__init__(make)

    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Asynchronous, owner: object = None) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self._bound(client)


class pages(_Method[P, T]):
    """A list, page after page: each is asked for when the one before has been read."""

    by = "_all"

    def __init__(self, make: Callable[Concatenate[Any, P], Call[Page[T]]]) -> None:
        super().__init__(make)

    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Asynchronous, owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self._bound(client)


class events(_Method[P, Event]):
    """An answer that streams."""

    by = "_stream"

    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, client: Asynchronous, owner: object = None) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self._bound(client)
