"""Files that come in: what says by itself that it is too long is refused before anything of it is read."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _

from memoryhub.errors import TooLarge
from memoryhub.languages import grouped

ENVELOPE = 64 * 1024  # bytes that a form may have beside its files


def says_too_long(request: HttpRequest, most: int) -> bool:
    """More than files of ``most`` bytes need. Asked before the CSRF token, whose check reads the whole form."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdecimal() and int(length) > most + ENVELOPE


def too_long(most: int) -> TooLarge:
    return TooLarge(_("A file may have at most %s bytes.") % grouped(most))


def require_fitting(request: HttpRequest, most: int) -> None:
    if says_too_long(request, most):
        raise too_long(most)
