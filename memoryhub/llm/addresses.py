"""Checks of network addresses: the form of a URL that a person entered, and the IP address that a connection uses.

A host name is resolved once, and the connection uses one of these addresses after a check. A name that resolves
differently a moment later (DNS rebinding) therefore cannot change the target. Cloud metadata services, which hand out
the machine's own credentials, are always blocked.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
import threading
import unicodedata
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from enum import Enum
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
from django.utils.translation import gettext as _

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # apart from NAT64 the only globally routed IPv6 range
LINK_LOCAL = ipaddress.ip_network("169.254.0.0/16")  # used by nearly every cloud's metadata service
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, DigitalOcean, Hetzner, OpenStack, Oracle …
        "169.254.170.2",  # AWS, for containers
        "169.254.170.23",  # AWS, for pods
        "169.254.42.42",  # Scaleway
        "169.254.0.23",  # Tencent
        "168.63.129.16",  # Azure's wire server; formally a public address
        "192.0.0.192",  # Oracle, the older one
        "100.100.100.200",  # Alibaba
        "fd00:ec2::254",  # AWS, and for pods
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
        "fd00:c1::a9fe:a9fe",  # Oracle
        "fe80::a9fe:a9fe",  # OpenStack
    )
)
# For requests through a proxy, which resolves names itself; without a proxy the address is checked.
METADATA_NAMES = frozenset(
    {
        "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
        "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
    }
)  # fmt: skip


class AddressRange(Enum):
    """The addresses that a connection may reach, by who entered the URL. Metadata services are never included."""

    # Entered by the operator in the environment: any address, also by proxy and redirect.
    CONFIGURED = "configured"
    ANYWHERE = "anywhere"  # entered by an administrator: any address, but no redirects
    PUBLIC = "public"  # entered by a user: no address in this server's own network
    INTERNAL = "internal"  # marked as local: only addresses in this server's own network


class AddressRefused(httpx2.ConnectError):
    """Raised when a host has no address that this connection may reach."""


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, if any."""
    carried = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    if carried is None and address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return carried


def is_public(address: Address) -> bool:
    """Return whether an address is globally reachable. If an IPv6 address embeds an IPv4 address, both must be."""
    if isinstance(address, ipaddress.IPv6Address):
        carried = _carried(address)
        if carried is not None and not is_public(carried):
            return False
        if carried is None and address not in GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast


def is_metadata(address: Address) -> bool:
    """Return whether an address, or an IPv4 address embedded in it, belongs to a cloud's metadata service."""
    if isinstance(address, ipaddress.IPv4Address):
        return address in LINK_LOCAL or address in METADATA
    carried = _carried(address)
    if carried is not None and is_metadata(carried):
        return True
    unscoped = ipaddress.IPv6Address(int(address))
    return unscoped in METADATA or not METADATA.isdisjoint(_embedded(unscoped))


def _embedded(address: ipaddress.IPv6Address) -> list[Address]:
    """Return the IPv4 addresses that an IPv6 address may embed (RFC 6052), one for each possible prefix length."""
    bits = int(address)
    without_u = bits >> 64 << 56 | bits & (1 << 56) - 1  # bits 64 to 71 are reserved
    candidates = [without_u >> 120 - prefix - 32 for prefix in (32, 40, 48, 56, 64)]
    return [ipaddress.IPv4Address(each & 0xFFFFFFFF) for each in (*candidates, bits)]


def is_metadata_host(host: str) -> bool:
    """Return whether a URL's host is a known name or address of a metadata service. Does not resolve the name."""
    address = literal(host)
    return is_metadata(address) if address else _plain(host).lower() in METADATA_NAMES


async def refuse_metadata(request: httpx2.Request) -> None:
    """Raise AddressRefused if a request or redirect goes to a metadata service. A request hook of httpx."""
    if is_metadata_host(request.url.host):
        raise AddressRefused("a cloud's metadata service", request=request)


def may_reach(address: Address, address_range: AddressRange) -> bool:
    if is_metadata(address):
        return False
    if address_range is AddressRange.PUBLIC:
        return is_public(address)
    return address_range is not AddressRange.INTERNAL or not is_public(address)


def literal(host: str) -> Address | None:
    """Parse a host as an IP address, also in forms such as 127.1, which resolvers accept. Return None for a name."""
    host = _plain(host)
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeError, ValueError):
        return None


def _plain(host: str) -> str:
    """Normalize a host as resolvers do: decode percent-escapes, apply NFKC, make U+3002 a dot, strip trailing dots."""
    return unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".").rstrip(".")


class PinnedTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport that resolves the host name, checks its addresses and connects to a permitted one."""

    def __init__(self, address_range: AddressRange, *, limits: httpx2.Limits, verify: ssl.SSLContext) -> None:
        self._reach = address_range
        self._inner = httpx2.AsyncHTTPTransport(limits=limits, verify=verify)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            port = request.url.port or (443 if request.url.scheme == "https" else 80)
            addresses = await _addresses(request.url.host, port)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error)) from error
        failure: httpx2.TransportError | None = None
        for attempt in _attempts(request, (str(each[4][0]) for each in addresses), self._reach):
            try:
                return await self._inner.handle_async_request(attempt)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure or AddressRefused("not an address that this connection may reach")

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _addresses(host: str, port: int) -> list[Any]:
    """Call ``getaddrinfo`` in a thread of its own, unless the host is an IP address.

    A closing event loop waits for its default thread pool, and a slow name server would delay that.
    """
    if literal(host) is not None:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    future: Future[list[Any]] = Future()

    def ask() -> None:
        with suppress(InvalidStateError):  # the caller was cancelled
            try:
                future.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except Exception as error:
                future.set_exception(error)

    threading.Thread(target=ask, name="addresses", daemon=True).start()
    return await asyncio.wrap_future(future)


def _attempts(
    request: httpx2.Request, addresses: Iterable[str], address_range: AddressRange
) -> list[httpx2.Request]:
    """Return a copy of the request for each permitted address. The Host header and TLS still use the name."""
    return [
        httpx2.Request(
            request.method,
            request.url.copy_with(host=text),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        for text in dict.fromkeys(addresses)
        if may_reach(ipaddress.ip_address(text.split("%")[0]), address_range)
    ]


CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
INTERNAL_NAMES = ("localhost", "local", "internal", "lan", "home.arpa")


def wrong_shape(url: str, *, longest: int, example: str, query: bool = False) -> str:
    """Return what is wrong with a URL's form, or "".

    ``longest``: most characters. ``example``: the error for text that is no URL. ``query``: whether it may have a query
    string.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port_is_fine = parts.port is None or 0 < parts.port < 65536
    except ValueError:
        return example
    if parts.scheme not in {"http", "https"} or not host or not port_is_fine:
        return example
    if len(url) > longest or CONTROL.search(url) or " " in url:
        return example
    if query and (parts.username or parts.password or parts.fragment):
        return _("Must have no name, password or # in it.")
    if not query and (parts.username or parts.password or parts.query or parts.fragment):
        return _("Must have no name, password, ? or # in it. The key has a field of its own.")
    if is_metadata_host(host):
        return _("Is the address of a cloud's metadata service, which nothing here may reach.")
    return ""


def is_internal(url: str) -> bool:
    """Return whether a URL's host is a private address or a name such as localhost. Does not resolve names."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    address = literal(host)
    if address is not None:
        return not is_public(address)
    return host.split(".")[-1] in INTERNAL_NAMES or host.endswith("home.arpa")
