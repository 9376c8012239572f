"""The blocking and the asynchronous client, and the decorators that make a call a method of both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import httpx2

from memoryhub_client.asking import Asking, Call
from memoryhub_client.errors import ApiError, seconds_in
from memoryhub_client.types import Event, Page
from memoryhub_client.waiting import Awaits, Blocks

P = ParamSpec("P")
T = TypeVar("T")
Transport = TypeVar("Transport", httpx2.BaseTransport, httpx2.AsyncBaseTransport)


class _Method(Generic[P, T]):
    """Base of the decorators. The decorated method describes a request; the client's method sends it.

    ``by`` names the method of ``Asking`` that sends the request, ``gives`` the client's method that returns the result.
    """

    by, gives = "read", "_one"

    def __init__(self, make: Callable[Concatenate[Any, P], Any]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def _bound(self, client: Any) -> Callable[P, Any]:
        def ask(*given: P.args, **named: P.kwargs) -> Any:
            made = self.make(client, *given, **named)
            asked = getattr(client._asking, self.by)(made) if isinstance(made, Call) else made
            return getattr(client, self.gives)(asked)

        ask.__doc__ = self.__doc__
        return ask


class call(_Method[P, T]):  # a decorator
    """Decorator for a method that describes one request, or for a coroutine that sends several."""

    def __init__(self, make: Callable[Concatenate[Any, P], Call[T] | Coroutine[Any, Any, T]]) -> None:
        super().__init__(make)

    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Asynchronous, owner: object = None) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self._bound(client)


class _Many(_Method[P, T]):
    gives = "_each"

    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Asynchronous, owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self._bound(client)


class pages(_Many[P, T]):
    """Decorator for a method that lists items, requested page by page."""

    by = "all"

    def __init__(self, make: Callable[Concatenate[Any, P], Call[Page[T]]]) -> None:
        super().__init__(make)


class events(_Many[P, Event]):
    """Decorator for a method that streams the events of an answer."""

    by = "stream"


class _Client(Generic[Transport]):
    """Base of both clients. ``timeout`` is in seconds, ``retries`` the maximum number of retries of a call.

    Without an API key, call ``sign_in`` first.
    """

    _waits: ClassVar[type[Blocks] | type[Awaits]]

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout: float = 60,
        retries: int = 4,
        transport: Transport | None = None,
    ) -> None:
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        options = {"base_url": url, "headers": headers, "timeout": timeout, "transport": transport}
        self._asking = Asking(self._waits(**options), retries)

    @call
    async def sign_in(self, username: str, password: str) -> None:
        """Sign in with a password, as in a browser, for calls that an API key may not make.

        Raises ApiError ``not_signed_in`` if the password is wrong or a second factor is required.
        """
        asking = self._asking
        asking.waiting.http.cookies.clear()
        await asking.answer(Call("", "GET", "/accounts/login/"))
        await asking.typed("/accounts/login/", login=username, password=password)
        await asking.answer(Call("workspaces_list", "GET", "/chat/api/workspaces", query={"limit": 1}))

    @call
    async def confirm_password(self, password: str) -> None:
        """Confirm the password, for fifteen minutes, before a call that requires it.

        Raises ApiError ``bad_password`` if the password is not accepted.
        """
        done = await self._asking.typed("/accounts/reauthenticate/", password=password)
        if not done.is_redirect:
            raise ApiError(403, "bad_password", "The password was not accepted.", {}, seconds_in(done))

    @call
    async def close(self) -> None:
        await self._asking.waiting.close()


class Blocking(_Client[httpx2.BaseTransport]):
    """Base of the blocking client, whose calls return when the response has arrived."""

    _waits = Blocks

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @staticmethod
    def _one(work: Coroutine[Any, Any, T]) -> T:
        try:
            work.send(None)
        except StopIteration as done:
            made: T = done.value
            return made
        raise AssertionError("nothing in it waits for a loop")

    @classmethod
    def _each(cls, items: AsyncGenerator[T, None]) -> Iterator[T]:
        try:
            while True:
                yield cls._one(items.__anext__())
        except StopAsyncIteration:
            return
        finally:
            cls._one(items.aclose())


class Asynchronous(_Client[httpx2.AsyncBaseTransport]):
    """Base of the asynchronous client, whose calls return awaitables or asynchronous iterators."""

    _waits = Awaits

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    @staticmethod
    def _one(work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return work

    @staticmethod
    def _each(items: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        return items
