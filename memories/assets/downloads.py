"""A file on its way to a browser or program: always as a download, never as something to run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from memories.assets.assets import TEXT, open_file
from memories.models import Asset

CHUNK = 64 * 1024


def download(asset: Asset) -> StreamingHttpResponse:
    """Read while it is sent. A page may still show a picture of it by ``<img>``, where nothing in it runs."""
    charset = "; charset=utf-8" if asset.content_type == TEXT else ""
    response = StreamingHttpResponse(_chunks(open_file(asset)), content_type=f"{asset.content_type}{charset}")
    response["Content-Length"] = str(asset.size)
    response["Content-Disposition"] = content_disposition_header(True, asset.name) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    """Asynchronous, since a server under ASGI would read a plain iterator to its end first."""
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
