"""Usernames that may be made: none that people would take for somebody else's.

What looks like what is Unicode's to say (its confusables and scripts, from ``confusable_homoglyphs``).
"""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from functools import cache
from string import ascii_uppercase
from typing import Any

from confusable_homoglyphs.categories import unique_aliases
from confusable_homoglyphs.utils import load
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import connection
from django.utils.translation import gettext_lazy as _

# Scripts that are written together, as Unicode's "highly restrictive" level has them (UTS 39, 5.2).
TOGETHER = (
    {"LATIN", "HAN", "HIRAGANA", "KATAKANA"},
    {"LATIN", "HAN", "BOPOMOFO"},
    {"LATIN", "HAN", "HANGUL"},
)
ANY_SCRIPT = {"COMMON", "INHERITED"}
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")  # that nobody sees
STROKES = frozenset("'\u0640\u07fa")  # what apostrophes are written as; those that stretch Arabic and N'Ko
DIRECTION = "\u200e"  # stands around what is written from right to left in the data
UNSEEN = _("This name contains invisible characters.")
MIXED = _("This name mixes alphabets, so it could be mistaken for another. Use only one.")
ALIKE = _("This name, or one that looks like it, is taken. Choose another.")
# Django's, and the apostrophe of O'Neil@example.org, as company directories have it.
SIGNS = RegexValidator(r"^[\w.@+'-]+\Z", _("Use only letters, numbers and these signs: @ . + - _ '"))
ENDS = ".@+-_'"
_HELD = 0x757365726E616D65  # "username": of the lock under which names are looked for and made


def check_username(name: str, others: Any) -> None:
    """Raises ValidationError where a new name hides something or looks like one of these people's."""
    if any(unicodedata.category(sign) in {"Cc", "Cf"} or sign in FILLERS for sign in name):
        raise ValidationError(UNSEEN, code="unseen")
    scripts = unique_aliases(name) - ANY_SCRIPT
    if len(scripts) > 1 and not any(scripts <= group for group in TOGETHER):
        raise ValidationError(MIXED, code="mixed")
    if others.filter(looks__overlap=looks_of(name)).exists():
        raise ValidationError(ALIKE, code="alike")


def hold_usernames() -> None:
    """Lock the making of names until this transaction is over: two at once would not see each other's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_HELD])


def looks_of(name: str) -> list[str]:
    """Return the looks of a name, as it stands and in small letters. Two names that share one look alike.

    Signs at its ends make no difference: ``nora.`` is read as ``nora``, whose sentence ends there.
    Case, width, marks and what has no width make no difference, nor do confusable letters: ``I``, ``l``, ``i`` and
    ``1`` are one, ``rn`` is ``m``. Nor do small capitals (Cyrillic's ``м`` is one of Latin's ``m``), and strokes that
    only stand beside or between letters are nothing.
    """
    name = name.strip(ENDS) or name
    return sorted({_skeleton(name), _skeleton(name.casefold())})


def _skeleton(text: str) -> str:
    """Until nothing changes: what a capital looks like has small letters with looks of their own."""
    alike = _bare("".join(_prototypes().get(sign, sign) for sign in _bare(text))).casefold()
    return alike.replace("i", "l") if alike == text else _skeleton(alike)


def _bare(text: str) -> str:
    """Without marks, width, strokes beside letters and what cannot be seen."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not _is_nothing(sign))


def _is_nothing(sign: str) -> bool:
    if sign in FILLERS or sign in STROKES or unicodedata.category(sign) in {"Mn", "Me", "Cf", "Cc"}:
        return True
    return unicodedata.name(sign, "").startswith("MODIFIER LETTER ")


@cache
def _prototypes() -> dict[str, str]:
    """For each sign that Unicode has in its table the one that all alike are written as. Read once: 70 ms."""
    table = {sign: [other["c"] for other in others] for sign, others in load("confusables.json").items()}
    found = {}
    for sign, (first, *more) in table.items():
        # A sign stands beside its prototype alone, that beside all of its own; of two each may be the other's.
        lone_pair = len(table[first]) == 1
        if len(sign) == 1 and not more and (not lone_pair or (len(first), first) > (1, sign)):
            found[sign] = first.replace(DIRECTION, "")
    for letter in ascii_uppercase:
        with suppress(KeyError):  # there is none of X
            small = unicodedata.lookup(f"LATIN LETTER SMALL CAPITAL {letter}")
            found |= {sign: letter for sign in (small, found.get(small, small)) if not sign.isascii()}
    for sign in list(found):
        if found.get(found[sign].casefold(), "").casefold() == sign.casefold():
            del found[sign]  # each is the other's: one of them stays as it is
    return found
