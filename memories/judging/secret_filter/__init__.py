"""The filter that finds credentials in text, which are never stored, and personal numbers, stored only with consent.

It does not access the database and takes linear time: every quantifier is bounded, or can start only where the previous
attempt ended, and judging candidates may read at most as many characters as the text has. The worst of 139 kinds of
hostile text costs about a third more per byte than synthetic ASCII prose (tests/bench/bench_secret_filter.py). A
finding has a kind and a position; the credential or number itself is never kept or returned.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from pathlib import Path

from memories.judging.secret_filter import personal
from memories.judging.secret_filter.assignments import find_assignment
from memories.judging.secret_filter.shapes import find_shape
from memories.judging.secret_filter.terms import Finding, fold, original_span

__all__ = ["RULES", "Finding", "find_personal", "find_secret"]


def find_secret(text: str) -> Finding | None:
    """Return the first credential found in `text`, or None. Positions count characters of `text` as given.

    Recognizable shapes (a GitHub token, a private key, a URL with a password) are searched first, then values that the
    words before them call a secret ("password = …", "API key: …").
    """
    folded = fold(text)
    finding = find_shape(folded) or find_assignment(folded) or find_encoded(folded)
    return _placed(finding, text, folded)


def find_personal(text: str) -> Finding | None:
    """Return the first personal number in `text`, or None. Positions count characters of `text` as given.

    Personal numbers are cards, PINs, accounts, identity numbers, recovery codes and wallet keys. ``find_secret`` does
    not find these.
    """
    folded = fold(text)
    return _placed(personal.find_personal(folded), text, folded)


def _placed(finding: Finding | None, text: str, folded: str) -> Finding | None:
    """Return the finding with its position in the text as given."""
    if finding is None or folded == text:
        return finding
    start, end = original_span(text, finding.start, finding.end)
    return Finding(finding.kind, start, end)


# Assignments encoded once in base64: ``REJfUEFTU1dPUkQ9…`` is ``DB_PASSWORD=…``.

_TOKEN = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{16,2000}+={0,2}(?![A-Za-z0-9+/=_-])")
_ASSIGNS = re.compile(rb"[a-zA-Z_][\"']?\s?[:=]")
_PRINTABLE = re.compile(rb"[\t\n\r -~]+")
_ALLOWANCE = 4_096  # decoded characters that are judged; a text with more encoded assignments is refused


def find_encoded(text: str) -> Finding | None:
    """Return the first base64 token of `text` (folded) that decodes to text with a credential assigned in it."""
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


def _checksum(folder: Path) -> int:
    """Return a 31-bit checksum of the source code of all rules, as their version.

    A changed comment causes an unnecessary check of stored rows, but a forgotten version number could leave a secret
    stored.
    """
    checksum = 0
    for source in sorted(folder.glob("*.py")):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    return checksum & 0x7FFFFFFF or 1


RULES = _checksum(Path(__file__).parent)
