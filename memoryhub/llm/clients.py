"""HTTP clients of models: a connection pool per event loop, and limits on the size and duration of replies."""

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

import httpx2  # the transport that openai itself uses

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
# Connections stay open for two minutes (keepalive_expiry), so that the next turn of a conversation needs no handshake.
# Never through a proxy, which would resolve the name itself.
PINNED = (AddressRange.PUBLIC, AddressRange.INTERNAL)
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
"""Called before every attempt, so that a server that restarted on another port is found; None if it is not ready."""


class Clients:
    """A cache of OpenAI clients for one endpoint: one per event loop, because connections belong to a loop, and one
    for blocking calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[Endpoint, openai.AsyncOpenAI]] = {}
        self._blocking: tuple[Endpoint, openai.OpenAI] | None = None

    def for_running_loop(self, endpoint: Endpoint) -> openai.AsyncOpenAI:
        import openai  # slow to import, and not every command needs it

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
        """Close the running loop's client and the blocking client. The next call creates new clients."""
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
    """Return an HTTP client that enforces the endpoint's address range.

    Redirects and replies of unlimited size are allowed only for endpoints that the operator configured.
    """
    hooks: dict[str, list[Any]] = {"request": [refuse_metadata], "response": [bound]}
    return httpx2.Client(**_guard(endpoint, hooks), **_way(endpoint, PinnedTransport))


def ask_for_models(endpoint: Endpoint, *, seconds: float) -> httpx2.Response:
    """Request the server's list of models, within ``seconds``. Raises httpx2's errors if the request fails."""
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
    """The asynchronous variant of ``blocking_client``."""
    hooks: dict[str, list[Any]] = {"request": [refuse_metadata_async], "response": [bound_stream]}
    return httpx2.AsyncClient(**_guard(endpoint, hooks), **_way(endpoint, AsyncPinnedTransport))


def _guard(endpoint: Endpoint, hooks: dict[str, list[Any]]) -> dict[str, Any]:
    if endpoint.reach is AddressRange.CONFIGURED:
        return {"follow_redirects": True, "event_hooks": {"request": hooks["request"]}}
    return {"follow_redirects": False, "event_hooks": hooks, "headers": PLAIN}


def _way(endpoint: Endpoint, pinned: type[PinnedTransport] | type[AsyncPinnedTransport]) -> dict[str, Any]:
    """Return the transport options: the environment's proxies if allowed and set, else a direct, checked connection."""
    by_proxy = endpoint.reach not in PINNED and not endpoint.is_on_this_machine
    if by_proxy and getproxies().keys() - {"no"}:
        return {"limits": LIMITS}
    transport = pinned(endpoint.reach, limits=LIMITS, verify=_authorities(endpoint))
    return {"transport": transport, "trust_env": False}


def _authorities(endpoint: Endpoint) -> ssl.SSLContext:
    """Return the TLS context. Loading trusted authorities takes 35 ms, so it happens once, and only if needed.

    A plain HTTP server without redirects gets a context without authorities, with which every TLS connection fails.
    """
    redirects = endpoint.reach is AddressRange.CONFIGURED and not endpoint.is_on_this_machine
    if endpoint.base_url.startswith("http://") and not redirects:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _everybodys_authorities()


@cache
def _everybodys_authorities() -> ssl.SSLContext:
    """Return the TLS context with trusted authorities, which all connections share."""
    return httpx2.create_ssl_context()


def _key(endpoint: Endpoint) -> str:
    # Without a key the library would read OPENAI_API_KEY and send that key to this endpoint.
    return endpoint.api_key or "none"


def timeout_of(seconds: float) -> httpx2.Timeout:
    """Return httpx timeouts for ``seconds`` of silence; connecting gets 5 s at most.

    The minimum is 0.05 s, as 0 fails.
    """
    seconds = max(seconds, 0.05)
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))


# Limits on the size and duration of replies from servers that the operator did not configure.

MOST_BYTES = 64 * 1024 * 1024  # limit of one reply; a streamed token takes some 300
PLAIN = {"accept-encoding": "identity"}  # a compressed reply can expand a thousandfold


class ReplyWithoutEnd(httpx2.ReadError):
    """Raised when a reply exceeds MOST_BYTES."""


def bound(response: httpx2.Response) -> None:
    """Limit a reply's size, and its duration to the call's read timeout. A response hook of blocking clients."""
    _require_plain(response)
    limit = response.request.extensions.get("timeout", {}).get("read")
    response.stream = _Bounded(response.stream, None if limit is None else time.monotonic() + limit)


async def bound_stream(response: httpx2.Response) -> None:
    """Limit a reply's size. A response hook of asynchronous clients, whose calls can be cancelled after any time."""
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


# An event loop for blocking code, so that a blocking call can be cancelled at any moment.

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in its own thread. It starts with the first call in each process, forked processes included."""

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
        """Run a coroutine and block for its result. Raises TimeoutError after ``seconds`` and cancels the coroutine."""
        return self.submit(asyncio.wait_for(work, max(seconds, 0.0))).result()

    def _forget(self) -> None:
        """Discard the loop in a forked process, where its thread does not exist."""
        self._lock, self._loop = threading.Lock(), None


calls = BackgroundLoop("calls")
