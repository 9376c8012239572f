"""Find credentials in text, so that none is ever stored, and numbers of somebody's own, so that none is stored unasked.

Pure and linear: every quantifier is bounded or can only start where the previous attempt ended, and judging what they
find may read no more than the text is long. The worst of 139 kinds of hostile text costs about a third more per byte
than made-up prose of ASCII alone (tests/bench/bench_secret_filter.py). The finding says what kind it is and where it
stands; the credential or number itself is never kept or returned.
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

    Recognisable shapes (a GitHub token, a private key, a URL with a password) are looked for first, then
    values that are called a secret by the words before them ("password = …", "API key: …").
    """
    folded = fold(text)
    finding = find_shape(folded) or find_assignment(folded) or find_encoded(folded)
    return _placed(finding, text, folded)


def find_personal(text: str) -> Finding | None:
    """Return the first number of a person's own in `text` (a card, a PIN, an account, an identity, a recovery code, a
    wallet's key), or None. Positions as of ``find_secret``, which does not look for these.
    """
    folded = fold(text)
    return _placed(personal.find_personal(folded), text, folded)


def _placed(finding: Finding | None, text: str, folded: str) -> Finding | None:
    """The finding where it stands in the text as given."""
    if finding is None or folded == text:
        return finding
    start, end = original_span(text, finding.start, finding.end)
    return Finding(finding.kind, start, end)


# Assignments behind one layer of base64: ``REJfUEFTU1dPUkQ9…`` is ``DB_PASSWORD=…``.

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


def _checksum(folder: Path) -> int:
    """Return 31 bits over the source of all rules: a changed comment costs one more check of stored rows, but a
    forgotten version number would cost a secret.
    """
    checksum = 0
    for source in sorted(folder.glob("*.py")):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    return checksum & 0x7FFFFFFF or 1


RULES = _checksum(Path(__file__).parent)
