"""Which id a thing from a file has here: its own where that is free, else one that is made from it, always the same.

So nothing has to be noted down for a file that is imported twice to store once: what it holds is found again by id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Model

from memoryhub.ids import ALPHABET, LENGTH


@dataclass(frozen=True)
class Id:
    local: str
    is_here: bool  # stored already, by an earlier import or because it comes from this installation


FindTaken = Callable[[set[str]], Mapping[str, str]]


def derived_id(prefix: str, *of: str) -> str:
    """A public id that these words always give."""
    number = int.from_bytes(
        hashlib.sha256("\0".join((prefix, *of)).encode("utf-8", "replace")).digest(), "big"
    )
    letters = []
    for _ in range(LENGTH):
        number, at = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[at])
    return f"{prefix}_{''.join(letters)}"


def taken_by_none(model: type[Model], public_ids: Iterable[str]) -> dict[str, str]:
    """Those of these ids that are taken, before it is known by what that the importer sees."""
    rows = model._default_manager.filter(public_id__in=public_ids)
    return dict.fromkeys(rows.values_list("public_id", flat=True), "")


def resolve(
    prefix: str, wanted: Iterable[tuple[str, str]], find_taken: FindTaken
) -> dict[tuple[str, str], Id]:
    """For each (id in the file, where it is to lie) its id here. One call of ``find_taken``.

    ``find_taken`` says for those of some public ids that are taken where they lie; what the importer may not see lies
    nowhere that is wanted.
    """
    pairs = set(wanted)
    own = {pair: derived_id(prefix, pair[1], pair[0]) for pair in pairs}
    usable = re.compile(rf"{prefix}_[A-Za-z0-9]{{{LENGTH}}}")
    kept = {pair for pair in pairs if usable.fullmatch(pair[0])}
    taken = find_taken({pair[0] for pair in kept} | set(own.values()))
    found = {}
    for pair in pairs:
        given, into = pair
        if taken.get(own[pair]) == into:
            found[pair] = Id(own[pair], is_here=True)
        elif pair in kept and given not in taken:
            found[pair] = Id(given, is_here=False)
        elif pair in kept and taken[given] == into:
            found[pair] = Id(given, is_here=True)
        else:
            found[pair] = Id(own[pair], is_here=False)
    return found
