"""Plain lists: a statement a line, or a JSON array of texts or of objects with a ``content``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from chat.exchange.archive import Part
from chat.exchange.transcripts import Line
from memoryhub.errors import Invalid

LONGEST = 65_536  # bytes of a line of text; what is longer is refused as too long for a memory
BULLET = re.compile(r"^\s*[-*•\u2013]\s+")
FIELDS = ("content", "summary", "key", "category", "tags", "importance", "pinned", "expires_at", "created_at")


def lines_in(file: Part) -> Iterator[str]:
    """The lines of a text file that are not blank. Raises Invalid for what is no text."""
    while raw := file.readline(LONGEST):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if error.end < len(raw) or len(raw) < LONGEST:
                raise Invalid(_("This file is not UTF-8 text.")) from None
            text = raw.decode(errors="ignore")
        while not raw.endswith(b"\n") and (raw := file.readline(LONGEST)):
            pass
        if text.strip():
            yield without_bullet(text)


def line_of(statement: Any, *, importer: str) -> Line:
    """What is wrong with a statement is found where every line is checked."""
    given = statement if isinstance(statement, dict) else {"content": statement}
    fields = {name: given[name] for name in FIELDS if name in given}
    return {"type": "memory", "author": importer, "source_type": "import", **fields}


def without_bullet(text: str) -> str:
    return BULLET.sub("", text).strip()
