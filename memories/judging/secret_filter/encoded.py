"""Assignments behind one layer of base64: ``REJfUEFTU1dPUkQ9…`` is ``DB_PASSWORD=…``."""

from __future__ import annotations

import base64
import binascii
import re

from memories.judging.secret_filter.assignments import find_assignment
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.shapes import find_shape

_TOKEN = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{16,2000}+={0,2}(?![A-Za-z0-9+/=_-])")
_ASSIGNS = re.compile(rb"[a-zA-Z_][\"']?\s?[:=]")
_PRINTABLE = re.compile(rb"[\t\n\r -~]+")


_ALLOWANCE = 4_096  # characters behind base64 that are judged; more assignments than that are no talk


def find_encoded(text: str) -> Finding | None:
    """Return the first base64 token of `text` (folded) that holds plain text with a credential assigned in it."""
    spent = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        try:
            plain = base64.b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            continue
        if not (_PRINTABLE.fullmatch(plain) and _ASSIGNS.search(plain)):
            continue
        spent += len(plain)
        if spent > _ALLOWANCE:
            return Finding("too_many_statements", *match.span())
        if finding := find_shape(plain.decode()) or find_assignment(plain.decode()):
            return Finding(finding.kind, *match.span())
    return None
