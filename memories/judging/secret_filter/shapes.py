"""Credentials that can be told by their own shape, wherever they stand.

All rules of `issuers` are compiled into one expression, grouped by first character, so that each position of a text
is looked at once however many rules there are.
"""

import base64
import binascii
import re
from functools import cache

from memories.judging.secret_filter.alternatives import choice_of, spell_out
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.issuers import RULES, SIGNED
from memories.judging.secret_filter.prefixed import find_prefixed

_RANGES = ("[A-Z", "[a-z0-9]", "[0-9]", "[0-9a-f]")
_BASIC = re.compile(r"(?<![A-Za-z0-9])[Bb](?:asic|ASIC) {1,3}[\"']?([A-Za-z0-9+/_-]{8,400}={0,2})")


def _compile(rules: tuple[tuple[str, str], ...], before: str) -> re.Pattern[str]:
    """One expression for all rules. Rules that any letter may begin are looked at last, and only where six letters or
    digits stand in a row.
    """
    spelled = [variant for _, rule in rules for variant in spell_out(rule)]
    wide = [rule for rule in spelled if rule.startswith(_RANGES)]
    choice = choice_of([rule for rule in spelled if rule not in wide])
    if wide:
        choice += f"|(?=[A-Za-z0-9+/]{{6}})(?:{'|'.join(wide)})"
    return re.compile(f"{before}(?:{choice})")


_BEFORE = "(?<![A-Za-z0-9])(?=[A-Za-z0-9_])"  # the look-ahead passes over signs and blanks at little cost


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...]:
    """Compiled when a text is first looked at, not when a process starts."""
    return (_compile(RULES, _BEFORE), RULES), (_compile(SIGNED, ""), SIGNED)


def find_shape(text: str) -> Finding | None:
    """Return the first credential in `text` (folded) that its own shape gives away."""
    for pattern, rules in _patterns():
        if match := pattern.search(text):
            kind = next(kind for kind, rule in rules if re.compile(rule).match(text, match.start()))
            return Finding(kind, match.start(), match.end())
    for match in _BASIC.finditer(text):
        if _is_user_and_password(match[1]):
            return Finding("basic_auth", match.start(1), match.end(1))
    return find_prefixed(text)


def _is_user_and_password(encoded: str) -> bool:
    """True when base64 text decodes to printable "user:password"."""
    try:
        decoded = base64.b64decode(
            encoded + "=" * (-len(encoded) % 4), altchars=b"-_" if "-" in encoded else None
        )
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(32 <= byte < 127 for byte in decoded)
