"""Files in requests and responses: uploads with a size limit, and downloads that no browser runs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable
from typing import IO, Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid, TooLarge
from memoryhub.languages import file_size

ENVELOPE = 64 * 1024  # bytes that a form may have beside its files
HEAD = 512  # bytes by which a file is known for what it is


def says_too_long(request: HttpRequest, most: int) -> bool:
    """More than files of ``most`` bytes need. Asked before the CSRF token, whose check reads the whole form."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdecimal() and int(length) > most + ENVELOPE


def too_long(most: int) -> TooLarge:
    return TooLarge(_("A file may be at most %s.") % file_size(most))


def copied(content: Iterable[bytes], file: IO[bytes], most: int) -> tuple[int, str, bytes]:
    """Its size, SHA-256 and first bytes, once it is written. Raises TooLarge, or Invalid where it is empty."""
    size, digest, head = 0, hashlib.sha256(), b""
    for chunk in content:
        size += len(chunk)
        if size > most:
            raise too_long(most)
        head = (head + chunk[:HEAD])[:HEAD]
        digest.update(chunk)
        file.write(chunk)
    if not size:
        raise Invalid(fields={"file": _("Must not be empty.")})
    return size, digest.hexdigest(), head


def require_fitting(request: HttpRequest, most: int) -> None:
    if says_too_long(request, most):
        raise too_long(most)


CHUNK = 64 * 1024
SHUT = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def file_response(file: IO[Any], *, name: str, size: int, content_type: str) -> StreamingHttpResponse:
    """Read while it is sent. A page may still show a picture of it by ``<img>``, where nothing in it runs."""
    response = StreamingHttpResponse(_chunks(file), content_type=content_type, headers=SHUT)
    response["Content-Length"] = str(size)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


async def _chunks(file: IO[Any]) -> AsyncIterator[bytes]:
    """Asynchronous, since a server under ASGI would read a plain iterator to its end first."""
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
