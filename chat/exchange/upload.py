"""What both doors for uploads refuse before they read one."""

from __future__ import annotations

from django.conf import settings

from chat.exchange.upload_files import too_large

FORM = 65_536  # bytes that a form needs beside its file


def refuse_too_large(content_length: str | None) -> None:
    """By what the request says of itself; what it sends is counted as well."""
    if content_length and content_length.isdigit() and int(content_length) > settings.IMPORT_MAX_BYTES + FORM:
        raise too_large()
