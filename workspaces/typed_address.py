"""An address that somebody typed, looked at as far as it can be without asking anybody. The rest is seen at every
connection, by ``memoryhub.llm.addresses``.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from memoryhub.llm.addresses import is_metadata_host, is_public, literal

CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
INTERNAL_NAMES = ("localhost", "local", "internal", "lan", "home.arpa")


def wrong_shape(url: str, *, longest: int, example: str, query: bool = False) -> str:
    """Return what is wrong with its form, or nothing. ``example``: the sentence for what is no address at all."""
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
    """Whether it says by itself that it is inside this server's network."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    address = literal(host)
    if address is not None:
        return not is_public(address)
    return host.split(".")[-1] in INTERNAL_NAMES or host.endswith("home.arpa")
