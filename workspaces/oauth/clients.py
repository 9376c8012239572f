"""Programs that register themselves, which anybody may do: held to addresses that are safe to send people to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid
from workspaces.models import OAuthClient

MOST_ADDRESSES, ADDRESS_LENGTH = 10, 500
MOST_UNUSED = 1_000  # of these the oldest go for new ones
UNUSED_FOR = timedelta(days=1)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Besides https, and http on one's own machine, programs have schemes of their own (cursor:). These are none's own: of
# browsers, of systems, and those that a web site may take (web+), or that hand an address on.
NOT_THEIRS = re.compile(
    r"about|blob|chrome|content|data|feed|file|filesystem|ftp|gopher|googlechromes?|http|intent|jar|javascript|mailto|"
    r"microsoft-edge|ms-.*|resource|search-ms|sftp|sms|ssh|tel|vbscript|view-source|web\+.*|wss?|x-safari-.*"
)
HANDED_ON = re.compile(r"(?i)(?:https?|javascript|data)(?::|%3a)|\|")
HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
QUOTES = str.maketrans(dict.fromkeys('“”„«»"', "'"))
UNSEEN = dict.fromkeys(
    map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
)  # they show as nothing, or as a blank


def register(name: str, redirect_uris: Sequence[str], *, now: datetime) -> OAuthClient:
    """A new program. Raises Invalid for an address that nobody should be sent to."""
    if not 1 <= len(redirect_uris) <= MOST_ADDRESSES:
        raise Invalid(fields={"redirect_uris": _("must have 1 to %s addresses") % MOST_ADDRESSES})
    for each in redirect_uris:
        if not _is_safe(each):
            raise Invalid(
                fields={
                    "redirect_uris": _(
                        "must be https, http on this computer, or a scheme of the program's own"
                    )
                }
            )
    unused = _unused()
    if unused.count() >= MOST_UNUSED:
        oldest = unused.order_by("created_at").values_list("pk", flat=True)[: MOST_UNUSED // 10]
        OAuthClient.objects.filter(pk__in=list(oldest)).delete()
    return OAuthClient.objects.create(
        name=_clean_name(name), redirect_uris=list(redirect_uris), created_at=now
    )


def find(public_id: str) -> OAuthClient | None:
    return None if "\0" in public_id else OAuthClient.objects.filter(public_id=public_id).first()


def is_registered(client: OAuthClient, redirect_uri: str) -> bool:
    """Letter by letter; of a program on the person's own computer the port may be another each time (RFC 8252)."""
    return any(
        each == redirect_uri or _but_for_its_port(each) == _but_for_its_port(redirect_uri) is not None
        for each in client.redirect_uris
    )


def sweep(*, now: datetime) -> int:
    """Forget programs that nobody let in; how many."""
    return _unused().filter(created_at__lt=now - UNUSED_FOR).delete()[0]


def _unused() -> QuerySet[OAuthClient]:
    return OAuthClient.objects.filter(keys=None, codes=None)


def _is_safe(address: str) -> bool:
    parts = _split(address)
    if parts is None or len(address) > ADDRESS_LENGTH or "#" in address or parts.username is not None:
        return False
    if parts.scheme == "https":
        return HOST.fullmatch(parts.hostname or "") is not None
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK
    rest = address.removeprefix(f"{parts.scheme}:")
    return not NOT_THEIRS.fullmatch(parts.scheme) and not HANDED_ON.search(rest) and bool(rest.strip("/"))


def _but_for_its_port(address: str) -> SplitResult | None:
    """None for what is on no loopback address."""
    parts = _split(address)
    if (
        parts is None
        or parts.scheme != "http"
        or parts.hostname not in LOOPBACK
        or parts.username is not None
    ):
        return None
    return parts._replace(netloc=parts.hostname)


def _split(address: str) -> SplitResult | None:
    if not address.isascii() or not address.isprintable() or "\\" in address or " " in address:
        return None
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  # raises for what is none
    except ValueError:
        return None
    return parts if parts.scheme else None


def _clean_name(name: str) -> str:
    """Return a program's name without marks that turn, hide or end what stands beside it."""
    seen = name.translate(UNSEEN).translate(QUOTES)
    shown = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in seen)
    return " ".join(shown.split())[:60].strip() or "A program"
