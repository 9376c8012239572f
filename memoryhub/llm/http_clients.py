"""HTTP clients of models: a connection pool per event loop, a loop for blocking calls, a limit on replies' size."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.request import getproxies

import httpx2  # the transport that openai itself uses

from memoryhub.llm.addresses import AddressRange, PinnedTransport, refuse_metadata
from memoryhub.llm.base import is_on_this_machine

if TYPE_CHECKING:
    import openai

PINNED = (AddressRange.PUBLIC, AddressRange.INTERNAL)  # never through a proxy, which resolves names
# Connections stay open for two minutes (keepalive_expiry), so that the next turn of a conversation needs no handshake.
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=120.0)


@dataclass(frozen=True, slots=True)
class Endpoint:
    base_url: str
    api_key: str = field(repr=False)
    model: str
    address_range: AddressRange = AddressRange.CONFIGURED

    @property
    def is_on_this_machine(self) -> bool:
        return is_on_this_machine(self.base_url)


class Clients:
    """A cache of OpenAI clients for one endpoint, one per event loop, because connections belong to a loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[Endpoint, openai.AsyncOpenAI]] = {}

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
                # Without a key the library would read OPENAI_API_KEY and send that key to this endpoint.
                api_key=endpoint.api_key or "none",
                max_retries=0,
                http_client=async_client(endpoint),
            )
            self._by_loop[loop] = (endpoint, client)
            return client

    def complete(self, endpoint: Endpoint, seconds: float, **request: Any) -> httpx2.Response:
        """Request a chat completion without streaming, and return the response. Blocks for at most ``seconds``."""

        async def ask() -> httpx2.Response:
            completions = self.for_running_loop(endpoint).chat.completions
            reply = await completions.with_raw_response.create(timeout=timeout_of(seconds), **request)
            return reply.http_response

        return reply_within(seconds, ask())

    async def aclose(self) -> None:
        """Close the clients of the running loop and of blocking calls. The next call creates new clients."""
        with self._lock:
            mine = self._by_loop.pop(asyncio.get_running_loop(), None)
            blocking = self._by_loop.pop(calls.loop, None) if calls.loop else None
        if mine:
            await mine[1].close()
        if blocking:
            await asyncio.wrap_future(calls.submit(blocking[1].close()))


def get(
    endpoint: Endpoint,
    path: str,
    *,
    seconds: float,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """Request a path below the endpoint's URL, within ``seconds``. Blocks. Raises httpx2's errors if it fails."""

    async def ask() -> httpx2.Response:
        async with async_client(endpoint) as client:
            return await client.get(
                f"{endpoint.base_url}{path}", params=params, headers=headers, timeout=timeout_of(seconds)
            )

    return reply_within(seconds, ask())


def ask_for_models(endpoint: Endpoint, *, seconds: float) -> httpx2.Response:
    """Request the server's list of models, within ``seconds``. Blocks. Raises httpx2's errors if it fails."""
    headers = {"Authorization": f"Bearer {endpoint.api_key or 'none'}"}
    return get(endpoint, "/models", seconds=seconds, headers=headers)


def async_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """Return a client for the endpoint's addresses. Only an operator's endpoint may redirect or reply without limit."""
    options = {**_transport_options(endpoint), "event_hooks": {"request": [refuse_metadata]}}
    if endpoint.address_range is AddressRange.CONFIGURED:
        return httpx2.AsyncClient(follow_redirects=True, **options)
    options["event_hooks"]["response"] = [bound]
    return httpx2.AsyncClient(follow_redirects=False, headers=PLAIN, **options)


def _transport_options(endpoint: Endpoint) -> dict[str, Any]:
    """Return a client's transport: the environment's proxies, if allowed and set, or a direct, checked connection."""
    by_proxy = endpoint.address_range not in PINNED and not endpoint.is_on_this_machine
    if by_proxy and getproxies().keys() - {"no"}:
        return {"limits": LIMITS}
    transport = PinnedTransport(endpoint.address_range, limits=LIMITS, verify=_authorities(endpoint))
    return {"transport": transport, "trust_env": False}


def _authorities(endpoint: Endpoint) -> ssl.SSLContext:
    """Return the TLS context: without authorities for a plain HTTP server without redirects, so that all TLS fails."""
    redirects = endpoint.address_range is AddressRange.CONFIGURED and not endpoint.is_on_this_machine
    if endpoint.base_url.startswith("http://") and not redirects:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _shared_tls_context()


@cache
def _shared_tls_context() -> ssl.SSLContext:
    """Load the trusted authorities, which takes 35 ms."""
    return httpx2.create_ssl_context()


def timeout_of(seconds: float) -> httpx2.Timeout:
    """Return httpx timeouts: ``seconds`` without data, and at most 5 s to connect. 0 fails, so 0.05 s is the least."""
    seconds = max(seconds, 0.05)
    return httpx2.Timeout(seconds, connect=min(seconds, 5.0))


# A limit on the size of replies from servers that the operator did not configure.

MOST_BYTES = 64 * 1024 * 1024  # limit of one reply; a streamed token takes some 300
PLAIN = {"accept-encoding": "identity"}  # a compressed reply can expand a thousandfold


async def bound(response: httpx2.Response) -> None:
    """Limit the size of a reply, and refuse compressed replies. A response hook of ``async_client``."""
    if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
        raise httpx2.DecodingError("A packed reply was not asked for.", request=response.request)
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for part in self._inner:
            left -= len(part)
            if left < 0:
                raise httpx2.ReadError("The reply has no end.")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread, for blocking calls that can be cancelled. It starts with a process's first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, name=self._name, daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _forget(self) -> None:
        """Discard the loop in a forked process, where its thread does not exist."""
        self._lock, self.loop = threading.Lock(), None


calls = BackgroundLoop("calls")


def reply_within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a request, within ``seconds``. Blocks. Raises httpx2's ReadTimeout if it takes longer."""
    try:
        return calls.submit(asyncio.wait_for(work, max(seconds, 0.0))).result()
    except TimeoutError:
        raise httpx2.ReadTimeout("The reply took too long to come.") from None
