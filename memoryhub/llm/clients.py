"""Where a model is reached, and the clients that keep their connections open between calls."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
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
from memoryhub.llm.bounds import PLAIN, bound, bound_stream
from memoryhub.llm.loops import calls

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
    """One asynchronous client an event loop (connections belong to one), and one for blocking calls."""

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
        """Close the running loop's client and the blocking one. The next call makes them anew."""
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
    """With the guard that the endpoint's reach asks for. Only what the operator typed may redirect elsewhere, and is
    read without end.
    """
    hooks: dict[str, list[Any]] = {"request": [refuse_metadata], "response": [bound]}
    return httpx2.Client(**_guard(endpoint, hooks), **_way(endpoint, PinnedTransport))


def ask_for_models(endpoint: Endpoint, *, seconds: float) -> httpx2.Response:
    """Its list of models, as it answers. Blocks for so long at the most. Raises httpx2's errors."""
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
    """The same for coroutines."""
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
    """Loading them takes 35 ms: once in a process, and not where all that is asked is a plain server.

    Without authorities TLS to anywhere fails, so this opens nothing. A server that may redirect may do so to TLS.
    """
    redirects = endpoint.reach is AddressRange.CONFIGURED and not endpoint.is_on_this_machine
    if endpoint.base_url.startswith("http://") and not redirects:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _everybodys_authorities()


@cache
def _everybodys_authorities() -> ssl.SSLContext:
    """It knows who may vouch for a server, and nothing of any one: each connection names the host that it wants."""
    return httpx2.create_ssl_context()


def _key(endpoint: Endpoint) -> str:
    # Without a key the library would look for OPENAI_API_KEY and send somebody's real key to this endpoint.
    return endpoint.api_key or "none"


def timeout_of(seconds: float) -> httpx2.Timeout:
    """Longest silence on the wire; connecting and waiting for a free connection get less. Where nothing is left of the
    seconds it is next to none: 0 would be an error.
    """
    seconds = max(seconds, 0.05)
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))
