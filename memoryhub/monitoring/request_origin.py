"""Origin of a request: its id, network and client address, and whether it comes from this machine.

``OriginMiddleware`` sets the current origin. Log lines and the audit log read it, so functions need no parameter for
it. Background jobs and commands have none.
"""

import ipaddress
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")
# Prefix lengths that show the network but do not identify a person.
IPV4_PREFIX, IPV6_PREFIX = (24, 48)


@dataclass(frozen=True)
class Origin:
    """The origin of a request. ``network`` is the truncated address, such as ``203.0.113.0/24``; empty if unknown."""

    request_id: str = ""
    network: str = ""


NOWHERE = Origin()
current: ContextVar[Origin] = ContextVar("origin", default=NOWHERE)  # until the next request sets its own


def origin_of(request: HttpRequest) -> Origin:
    """Return the request's origin, with the id that the caller sent if it is well formed, since proxies log it too."""
    request_id = request.headers.get("X-Request-ID", "")
    if not WELL_FORMED.fullmatch(request_id):
        request_id = secrets.token_hex(8)
    return Origin(request_id, network_of(client_address(request)))


def client_address(request: HttpRequest) -> str:
    """Return the client's address; empty if it is unknown.

    With N proxies in ``MEMORYHUB_TRUSTED_PROXIES``, it is the N-th entry of X-Forwarded-For from the right, which the
    outermost proxy added. Entries to the left of it were written by the client.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    if settings.TRUSTED_PROXIES:
        forwarded = [each for each in request.headers.get("X-Forwarded-For", "").split(",") if each.strip()]
        if len(forwarded) >= settings.TRUSTED_PROXIES:
            address = forwarded[-settings.TRUSTED_PROXIES]
    return _clean(address)


def network_of(address: str) -> str:
    if not address:
        return ""
    prefix = IPV6_PREFIX if ":" in address else IPV4_PREFIX
    return str(ipaddress.ip_network(f"{address}/{prefix}", strict=False))


def _clean(address: str) -> str:
    """Return an address without port, brackets and zone; an IPv4-mapped address as IPv4. Empty if it is invalid."""
    address = address.strip()
    if address.startswith("["):
        address = address[1:].split("]")[0]
    elif address.count(":") == 1:
        address = address.split(":")[0]
    try:
        ip = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return ""
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip)


# Prefixes of headers that proxies and tunnels add.
FORWARDED = (
    *("Forwarded", "Via", "X-Forwarded", "X-Original-", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip"),
    *("True-Client-Ip", "Cdn-Loop", "Cf-", "X-Envoy-", "Tailscale-"),
)


def serves_only_here(host: str | None = None) -> bool:
    """Return whether the server is reachable only from this machine, according to its settings.

    It must listen on a loopback address, have only local host names, and have no proxy or single sign-on configured.
    ``host`` replaces the address of the settings.
    """
    names = [settings.HOST if host is None else host, *settings.ALLOWED_HOSTS]
    of_others = (
        *(settings.TRUSTED_PROXIES, settings.HTTPS, settings.CSRF_TRUSTED_ORIGINS),
        *(settings.OIDC, settings.OAUTH, settings.SCIM_TOKEN, settings.SIGNUP_DOMAINS),
    )
    return all(map(_is_here, names)) and not any(of_others)


def comes_from_here(request: HttpRequest) -> bool:
    """Return whether a request comes from this machine without a proxy. Reliable only if ``serves_only_here``."""
    between = any(header.title().startswith(FORWARDED) for header in request.headers)
    # HTTP 1.0 shows a proxy: nginx uses it by default and adds no header, while browsers use 1.1 or later.
    version = request.META.get("SERVER_PROTOCOL", "").removeprefix("HTTP/")
    version = getattr(request, "scope", {}).get("http_version", version)
    return _is_here(client_address(request)) and not between and version != "1.0"


def _is_here(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
