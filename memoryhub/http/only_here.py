"""Whether nobody but this machine can reach MemoryHub, as its settings say, and whether a request comes from it."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest

from memoryhub.monitoring.origin import client_address

# Headers that proxies and tunnels add begin like this.
FORWARDED = (
    *("Forwarded", "Via", "X-Forwarded", "X-Original-", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip"),
    *("True-Client-Ip", "Cdn-Loop", "Cf-", "X-Envoy-", "Tailscale-"),
)


def serves_only_here(host: str | None = None) -> bool:
    """It listens on this machine alone and answers to its names alone, and no setting tells of a proxy or a company.

    ``host``: where it listens, if not where the settings say.
    """
    names = [settings.HOST if host is None else host, *settings.ALLOWED_HOSTS]
    of_others = (
        *(settings.TRUSTED_PROXIES, settings.HTTPS, settings.CSRF_TRUSTED_ORIGINS),
        *(settings.OIDC, settings.OAUTH, settings.SCIM_TOKEN, settings.SIGNUP_DOMAINS),
    )
    return all(map(_is_here, names)) and not any(of_others)


def comes_from_here(request: HttpRequest) -> bool:
    """Return whether a request to a hub that ``serves_only_here`` uses a name of this machine alone."""
    between = any(header.title().startswith(FORWARDED) for header in request.headers)
    return _is_here(client_address(request)) and not between and _protocol(request) != "1.0"


def _protocol(request: HttpRequest) -> str:
    """Return the protocol version: 1.1 or later from browsers. nginx forwards with 1.0 by default, without a header."""
    scope = getattr(request, "scope", {})
    return str(scope.get("http_version", request.META.get("SERVER_PROTOCOL", "").removeprefix("HTTP/")))


def _is_here(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
