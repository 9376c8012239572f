"""HTTP clients of models: open connections per event loop, and limits on replies."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx2  # the transport openai itself brings and speaks

from memoryhub.llm.addresses import (
    AddressRange,
    AsyncPinnedTransport,
    PinnedTransport,
    refuse_metadata,
    refuse_metadata_async,
)

if TYPE_CHECKING:
    import openai

CONNECT_TIMEOUT_SECONDS = 5.0
# A conversation pauses between turns: a connection kept for two minutes spares its next turn the handshake.
PINNED = (
    AddressRange.PUBLIC,
    AddressRange.INTERNAL,
)  # past any proxy, which would resolve the name by itself
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=120.0)


@dataclass(frozen=True, slots=True)
class Endpoint:
    base_url: str
    api_key: str = field(repr=False)
    model: str
    reach: AddressRange = AddressRange.CONFIGURED

    @property
    def is_on_this_machine(self) -> bool:
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


EndpointSource = Callable[[], Endpoint | None]
"""Asked before every attempt, so that a server that came back elsewhere is found; None: not there yet."""


class Clients:
    """An asynchronous client per event loop (connections belong to one), and one for blocking calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[Endpoint, openai.AsyncOpenAI]] = {}
        self._blocking: tuple[Endpoint, openai.OpenAI] | None = None

    def for_running_loop(self, endpoint: Endpoint) -> openai.AsyncOpenAI:
        import openai  # slow, and not every command needs it

        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._by_loop.get(loop)
            if known and known[0] == endpoint:
                return known[1]
            for closed in [other for other in self._by_loop if other.is_closed()]:
                del self._by_loop[closed]
            client = openai.AsyncOpenAI(
                base_url=endpoint.base_url,
                api_key=_key(endpoint),
                max_retries=0,
                http_client=async_client(endpoint),
            )
            self._by_loop[loop] = (endpoint, client)
            return client

    async def aclose(self) -> None:
        """Close the running loop's client and the blocking one. The next call makes new ones."""
        with self._lock:
            mine = self._by_loop.pop(asyncio.get_running_loop(), None)
            blocking, self._blocking = self._blocking, None
        if mine:
            await mine[1].close()
        if blocking:
            blocking[1].close()

    def blocking(self, endpoint: Endpoint) -> openai.OpenAI:
        import openai

        with self._lock:
            if self._blocking and self._blocking[0] == endpoint:
                return self._blocking[1]
            client = openai.OpenAI(
                base_url=endpoint.base_url,
                api_key=_key(endpoint),
                max_retries=0,
                http_client=blocking_client(endpoint),
            )
            self._blocking = (endpoint, client)
            return client


def blocking_client(endpoint: Endpoint) -> httpx2.Client:
    """Return a client with the address guard of the endpoint's range. Only the operator's own endpoints may redirect
    and send without end.
    """
    hooks: dict[str, list[Any]] = {"request": [refuse_metadata], "response": [bound]}
    return httpx2.Client(**_guard(endpoint, hooks), **_way(endpoint, PinnedTransport))


def ask_for_models(endpoint: Endpoint, *, seconds: float) -> httpx2.Response:
    """Request the list of models, for ``seconds`` at most. Raises httpx2's errors."""
    headers = {"Authorization": f"Bearer {endpoint.api_key or 'none'}"}

    async def ask() -> httpx2.Response:
        async with async_client(endpoint) as client:
            return await client.get(
                f"{endpoint.base_url}/models", headers=headers, timeout=timeout_of(seconds)
            )

    try:
        return calls.within(seconds, ask())
    except TimeoutError:
        raise httpx2.ReadTimeout("The list of models took too long to come.") from None


def async_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """As ``blocking_client``, for coroutines."""
    hooks: dict[str, list[Any]] = {"request": [refuse_metadata_async], "response": [bound_stream]}
    return httpx2.AsyncClient(**_guard(endpoint, hooks), **_way(endpoint, AsyncPinnedTransport))


def _guard(endpoint: Endpoint, hooks: dict[str, list[Any]]) -> dict[str, Any]:
    if endpoint.reach is AddressRange.CONFIGURED:
        return {"follow_redirects": True, "event_hooks": {"request": hooks["request"]}}
    return {"follow_redirects": False, "event_hooks": hooks, "headers": PLAIN}


def _way(endpoint: Endpoint, pinned: type[PinnedTransport] | type[AsyncPinnedTransport]) -> dict[str, Any]:
    """Straight to addresses that were looked at; by the environment's proxies where it has any and they may be used."""
    by_proxy = endpoint.reach not in PINNED and not endpoint.is_on_this_machine
    if by_proxy and getproxies().keys() - {"no"}:
        return {"limits": LIMITS}
    transport = pinned(endpoint.reach, limits=LIMITS, verify=_authorities(endpoint))
    return {"transport": transport, "trust_env": False}


def _authorities(endpoint: Endpoint) -> ssl.SSLContext:
    """Load them once per process (35 ms), and not for a plain server.

    Without authorities TLS to anywhere fails, so this opens nothing. A server that may redirect may do so to TLS.
    """
    redirects = endpoint.reach is AddressRange.CONFIGURED and not endpoint.is_on_this_machine
    if endpoint.base_url.startswith("http://") and not redirects:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _everybodys_authorities()


@cache
def _everybodys_authorities() -> ssl.SSLContext:
    """Return the TLS context with trusted authorities that all connections share; each connection names its own
    host.
    """
    return httpx2.create_ssl_context()


def _key(endpoint: Endpoint) -> str:
    # Without a key the library would look for OPENAI_API_KEY and send somebody's real key to this endpoint.
    return endpoint.api_key or "none"


def timeout_of(seconds: float) -> httpx2.Timeout:
    """Return time-outs for the longest silence; connecting and waiting for a connection get less. With no seconds left
    it is next to none, since 0 would be an error.
    """
    seconds = max(seconds, 0.05)
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))


# How much of a reply is read, and for how long, from a server that nobody here answers for.

MOST_BYTES = 64 * 1024 * 1024  # of one reply; a streamed token takes some 300
PLAIN = {"accept-encoding": "identity"}  # a packed reply may be a thousand times as long when it is unpacked


class ReplyWithoutEnd(httpx2.ReadError):
    """More than any answer needs."""


def bound(response: httpx2.Response) -> None:
    """Require a whole reply within the call's time-out. A hook of blocking clients."""
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


# Event loops for blocking code, so that a call can be cancelled at any moment.

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread of its own, begun with the first call in each process, forked ones too."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Block for the result. Raises TimeoutError after ``seconds`` and cancels the work."""
        return self.submit(asyncio.wait_for(work, max(seconds, 0.0))).result()

    def _forget(self) -> None:
        """In a forked process: the thread is the parent's."""
        self._lock, self._loop = threading.Lock(), None


calls = BackgroundLoop("calls")
