"""A document's file on its way to a browser or program: always as a download, never as something to run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from workspaces.documents.files import open_document
from workspaces.models import Document, DocumentVersion

CHUNK = 64 * 1024


def download(document: Document, of: Document | DocumentVersion | None = None) -> StreamingHttpResponse:
    """Read while it is sent; always as a download, never as something to run. ``of``: an earlier version of it."""
    file = of or document
    response = StreamingHttpResponse(_chunks(open_document(file)), content_type=file.media_type)
    response["Content-Length"] = str(file.size)
    response["Content-Disposition"] = content_disposition_header(True, document.title) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _chunks(file: IO[Any]) -> AsyncIterator[bytes]:
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
