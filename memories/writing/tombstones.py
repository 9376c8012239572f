"""Tombstones: how the gate knows what was forgotten for good, although nothing of it is kept (docs/decisions/0012).

A tombstone is the HMAC of a text in the form that ``essence`` gives, for one place. Its key lies in the data folder,
not in the database: who reads the database alone cannot try out guesses. The key is none of those that sign
sessions, so that a new ``MEMORYHUB_SECRET_KEY`` raises nothing from the dead.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as later

from memories.judging.duplicates import normalise
from memories.models import Memory, SourceType, Tombstone
from memories.writing.drafts import Draft
from memoryhub.database import queries
from memoryhub.errors import Conflict
from workspaces.models import User

_LIFT = "DELETE FROM memories_tombstone WHERE digest = %(digest)s AND place = ANY(%(places)s::bigint[])"
MEANT = frozenset("%#")  # punctuation that changes the meaning: 5 %, C#


class WasForgotten(Conflict):
    """Forgotten for good here, and no person is asking for it: nothing is stored. A model hears "not stored"."""

    code = "forgotten"
    default_message = later("Not saved: this was forgotten for good here.")


def essence(text: str) -> str:
    """The text without case, width, spacing, punctuation and unseen signs; a sign inside a number stays.

    Two texts of one essence are one sentence to everybody who reads them. ``3.5`` is not ``35``.
    """
    folded = normalise(text)
    kept = []
    for at, sign in enumerate(folded):
        group = unicodedata.category(sign)[0]
        inside_a_number = folded[at - 1 : at].isdigit() and folded[at + 1 : at + 2].isdigit()
        if group in "LNMS" or sign in MEANT or (group == "P" and inside_a_number):
            kept.append(sign)
    return "".join(kept) or folded


def digest(text: str) -> str:
    return hmac.new(settings.FORGET_KEY.encode(), essence(text).encode(), hashlib.sha256).hexdigest()


def put_up(texts: Iterable[tuple[int, str]], *, now: datetime) -> int:
    """Note that these (place, text) were forgotten for good; how many tombstones stand for them.

    Those that stood before count as well: who guesses must not learn what others forgot.
    """
    wanted = {(place, digest(text)) for place, text in texts if text}
    Tombstone.objects.bulk_create(
        [Tombstone(place=place, digest=made, created_at=now) for place, made in sorted(wanted)],
        ignore_conflicts=True,
    )
    return len(wanted)


def forgotten(drafts: Sequence[Draft], *, by: User | None) -> list[bool]:
    """Return which of these drafts the gate must not store automatically. ``by`` saves them; None: a job for their
    author. One query.
    """
    return forgotten_texts([(draft, draft.content) for draft in drafts], by=by)


def forgotten_texts(said: Sequence[tuple[Draft, str]], *, by: User | None) -> list[bool]:
    """The same of texts that drafts say beside their content. One query."""
    asked = [{(place, digest(text)) for place in _places(draft, by)} for draft, text in said]
    there = _there(set().union(*asked))
    return [bool(pairs & there) for pairs in asked]


def is_said_by_a_person(draft: Draft, by: User | None) -> bool:
    """Whether a person saves this, just now: a model, a conversation and an import are none."""
    return by is not None and not draft.is_automatic and draft.source_type != SourceType.IMPORT


def stands_against(draft: Draft, *, by: User | None) -> bool:
    """The gate's question. What a person saves themselves lifts the tombstone instead.

    Part of the transaction that stores the draft, under the lock of the workspace's writers. One query.
    """
    if not is_said_by_a_person(draft, by):
        return forgotten([draft], by=by)[0]
    if not draft.waits_for_review:  # otherwise approving it lifts the tombstone
        _lift(_places(draft, by), draft.content)
    return False


def stand_against_row(memory: Memory, *, by: User | None) -> bool:
    """The same for a row that comes back: a person who decides that lifts what stands against it."""
    if by is None:
        return bool(_there({(memory.place, digest(memory.content))}))
    _lift([memory.place], memory.content)
    return False


def check_edit(memory: Memory, changes: Mapping[str, Any], *, by: User | None) -> None:
    """The same for new text of a memory that is there. Raises WasForgotten."""
    for text in filter(None, (changes.get("content"), changes.get("summary"))):
        if by is not None:
            _lift([memory.place], text)
        elif _there({(memory.place, digest(text))}):
            raise WasForgotten


def _lift(places: Iterable[int], text: str) -> None:
    queries.rows(_LIFT, {"places": queries.bigints(places), "digest": digest(text)})


def _places(draft: Draft, by: User | None) -> set[int]:
    """Return the scopes whose tombstones keep this draft out: its own, its workspace's, and its author's personal one.

    The last counts only if the author saves it: others must not learn what the author has forgotten.
    """
    author = draft.author if by in (None, draft.author) else None
    return {draft.place, draft.workspace.pk} | ({-author.pk} if author else set())


def _there(wanted: set[tuple[int, str]]) -> set[tuple[int, str]]:
    if not wanted:
        return set()
    found = Tombstone.objects.filter(
        place__in={place for place, _ in wanted}, digest__in={made for _, made in wanted}
    )
    return wanted & set(found.values_list("place", "digest"))
