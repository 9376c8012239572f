"""A file on its way to a browser or program: always as a download, never as something to run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

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
