"""Which usernames may be made: none that people would take for somebody else's.

What looks like what is Unicode's to say (its confusables and scripts, from ``confusable_homoglyphs``).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

from confusable_homoglyphs.categories import unique_aliases
from confusable_homoglyphs.utils import load
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils.translation import gettext_lazy as _

# Scripts that are written together, as Unicode's "highly restrictive" level has them (UTS 39, 5.2).
TOGETHER = (
    {"LATIN", "HAN", "HIRAGANA", "KATAKANA"},
    {"LATIN", "HAN", "BOPOMOFO"},
    {"LATIN", "HAN", "HANGUL"},
)
ANY_SCRIPT = {"COMMON", "INHERITED"}
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0")  # letters of no width
DIRECTION = "\u200e"  # stands around what is written from right to left in the data
UNSEEN = _("This name has signs in it that nobody can see.")
MIXED = _("This name mixes alphabets, so that it can be taken for another. Write it in one.")
ALIKE = _("Somebody has this name, or one that looks like it. Choose another.")
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
    """Nobody else makes a name until this transaction is over: two at once would not see each other's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_HELD])


def looks_of(name: str) -> list[str]:
    """What a name looks like, as it stands and in small letters. Two names that share one look alike.

    Case, width, marks and what has no width make no difference, nor do confusable letters: ``I``, ``l``, ``i`` and
    ``1`` are one, ``rn`` is ``m``.
    """
    return sorted({_look(name), _look(name.casefold())})


def _look(text: str) -> str:
    alike = "".join(_prototypes().get(sign, sign) for sign in _bare(text))
    return _bare(alike).casefold().replace("i", "l")


def _bare(text: str) -> str:
    """Without marks, width and what cannot be seen."""
    signs = unicodedata.normalize("NFKD", text)
    return "".join(
        sign
        for sign in signs
        if unicodedata.category(sign) not in {"Mn", "Me", "Cf", "Cc"} and sign not in FILLERS
    )


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
    return found
