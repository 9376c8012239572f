"""Credentials that can be told by their own shape, wherever they stand.

All rules of `issuers` are compiled into one expression, grouped by first character, so that each position of a text
is looked at once however many rules there are.
"""

import base64
import binascii
import re

from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.issuers import RULES, SIGNED
from memories.judging.secret_filter.prefixed import find_prefixed

# The few characters or words that a rule may begin with, and the ranges that leave it open.
_LISTED = re.compile(r"(?:\[([A-Za-z0-9]+)\]|\(\?:([\w|-]+)\))(?![{?*+])")
_PLAIN = re.compile(r"[\w-](?![{?*+])")
_RANGES = ("[A-Z", "[a-z0-9]", "[0-9]", "[0-9a-f]")
_BASIC = re.compile(r"(?<![A-Za-z0-9])[Bb](?:asic|ASIC) {1,3}[\"']?([A-Za-z0-9+/_-]{8,400}={0,2})")


def _compile(rules: tuple[tuple[str, str], ...], before: str) -> re.Pattern[str]:
    """One expression for all rules. Rules that any letter may begin are looked at last, and only where six letters or
    digits stand in a row.
    """
    spelled = [variant for _, rule in rules for variant in _spell_out(rule)]
    wide = [rule for rule in spelled if rule.startswith(_RANGES)]
    choice = _choice([rule for rule in spelled if rule not in wide])
    if wide:
        choice += f"|(?=[A-Za-z0-9+/]{{6}})(?:{'|'.join(wide)})"
    return re.compile(f"{before}(?:{choice})")


def _choice(rules: list[str], shared: int = 0) -> str:
    """Any of the rules, which have their first `shared` characters in common. Those that share more form a branch of
    their own: the parser takes what is shared out in front, so most branches are left after a single comparison.
    """
    branches: dict[str, list[str]] = {}
    for rule in rules:
        plain = _PLAIN.match(rule, shared)
        branches.setdefault(rule[: shared + 1] if plain else rule, []).append(rule)
    return "|".join(
        f"(?:{_choice(branch, shared + 1)})" if len(branch) > 1 and branch[0] != branch[1] else branch[0]
        for branch in branches.values()
    )


def _spell_out(rule: str) -> list[str]:
    """The rule once for each character or word that it may begin with."""
    if match := _LISTED.match(rule):
        return [first + rule[match.end() :] for first in match[1] or match[2].split("|")]
    return [rule]


_BEFORE = "(?<![A-Za-z0-9])(?=[A-Za-z0-9_])"  # the look-ahead passes over signs and blanks at little cost
_SHAPE = _compile(RULES, _BEFORE)
_SIGN = _compile(SIGNED, "")


def find_shape(text: str) -> Finding | None:
    """Return the first credential in `text` (folded) that its own shape gives away."""
    for pattern, rules in ((_SHAPE, RULES), (_SIGN, SIGNED)):
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
