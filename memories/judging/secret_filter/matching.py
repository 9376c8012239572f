"""What all rules share: the finding, the text without disguises, and many expressions joined into one."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A credential of `kind` at text[start:end]. Deliberately holds no part of the text."""

    kind: str
    start: int
    end: int


# Undo the disguises that text can put on a credential before the rules look at it.

_CHUNK = 64  # NFKD sorts runs of combining marks in quadratic time; short chunks keep the whole linear

# Characters that show nothing: soft hyphen, combining joiner, fillers, zero-width and bidi controls, tags,
# selectors.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_COMBINING = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
# Signs that stand for whole words and never for a part of a credential; some would grow to eighteen
# characters.
_WORD_SIGNS = re.compile("[\u3200-\u33ff\ufb50-\ufdff]")
_ESCAPE = re.compile(r"\\[nrt]|\\/|\\u00[2-7][0-9a-fA-F]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z]{2,8});")
_DIGITS = "".join(
    chr(zero + number) for zero in (0x660, 0x6F0, 0x966) for number in range(10)
)  # Arabic and Hindi
# Cyrillic and Greek letters that are drawn like Latin ones, and the dashes, quotes and colons of typography.
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423"
    "\u0430\u0435\u0455\u0456\u0458\u043e\u0440\u0441\u0445\u0443\u0501\u04bb\u04cf"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
    "\u2010\u2011\u2012\u2013\u2014\u2212\u2236\ua789\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019" + _DIGITS,
    'ABESIJKMHOPCTXYaesijopcxydhlABEZHIKMNOPTYXo------::"""""\'\'' + 3 * "0123456789",
)


def _unescape(match: re.Match[str]) -> str:
    escape = match.group()
    if escape[1] == "u":
        return chr(int(escape[2:], 16))
    return "/" if escape[1] == "/" else " "


def fold(text: str) -> str:
    """Return `text` with invisible characters and accents gone, compatibility forms (full-width letters) and
    look-alike letters made ASCII, and the entities of HTML and the escapes of JSON strings resolved, once. Plain
    ASCII comes back unchanged.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity.group()), text)
    if not text.isascii():
        visible = _WORD_SIGNS.sub("*", _INVISIBLE.sub("", text))
        chunks = (visible[at : at + _CHUNK] for at in range(0, len(visible), _CHUNK))
        text = "".join([unicodedata.normalize("NFKD", chunk) for chunk in chunks])
        text = _COMBINING.sub("", text).translate(_LOOKALIKES)
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    return text


def original_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Map a span of fold(text) back to `text`: the shortest original span whose folded form covers it."""

    def original(position: int) -> int:
        low, high = 0, len(text)
        while low < high:
            middle = (low + high) // 2
            if len(fold(text[:middle])) <= position:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    first = original(start)
    return first, max(first, original(end - 1)) + 1


# Many expressions as one that looks at each place of a text once.

# The few characters or words that a rule may begin with.
_LISTED = re.compile(r"(?:\[([A-Za-z0-9]+)\]|\(\?:([\w|-]+)\))(?![{?*+])")
_PLAIN = re.compile(r"[\w-](?![{?*+])")


def choice_of(rules: list[str], shared: int = 0) -> str:
    """Any of the rules, which have their first `shared` characters in common. Those that share more form a branch of
    their own: the parser takes what is shared out in front, so most branches are left after a single comparison.
    """
    branches: dict[str, list[str]] = {}
    for rule in dict.fromkeys(rules):
        plain = _PLAIN.match(rule, shared)
        branches.setdefault(rule[: shared + 1] if plain else rule, []).append(rule)
    return "|".join(
        f"(?:{choice_of(branch, shared + 1)})" if len(branch) > 1 else branch[0]
        for branch in branches.values()
    )


def spell_out(rule: str) -> list[str]:
    """The rule once for each character or word that it may begin with."""
    if match := _LISTED.match(rule):
        return [first + rule[match.end() :] for first in match[1] or match[2].split("|")]
    return [rule]
