"""The decision what happens to a draft or to a row that is restored: new, duplicate, update, proposal or refused.

The gate, bulk saves, review, late vectors, imports and restores all call ``decide`` and apply its verdict; ``decide``
itself stores nothing. It reads stored memories through the interface ``Beside``: a single save queries the database,
and a bulk save uses rows loaded for the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.conf import settings
from django.utils.translation import gettext_lazy as later

from memories.models import Memory
from memories.writing.drafts import TEXTS, Draft, refuse_delicate
from memories.writing.similar import MOST_KEYS, Similar, find_equal, find_key_owner, find_similar
from memoryhub.errors import Conflict, DomainError, SecretRefused
from workspaces.index.embedding import Embedded

KEY_TAKEN = later("Another memory now has this key. Reject this one, or edit the other.")


@dataclass(frozen=True)
class Known:
    """Verdict: the draft is a duplicate of ``memory``. Only its wording is recorded, in the history of ``memory``."""

    memory: Memory


@dataclass(frozen=True)
class Update:
    """Verdict: update ``memory`` in place, because the draft has its key, or says the same and adds a key.

    ``previous_key_owner`` is an expired or ended memory that still has the key and must lose it first.
    """

    memory: Memory
    previous_key_owner: Memory | None = None


@dataclass(frozen=True)
class New:
    """Verdict: store a new row, or bring a deleted one back.

    The row gets the key of ``previous_key_owner``. A restored row loses its key if the key is ``taken_by`` another
    memory.
    """

    may_replace: Memory | None = None
    previous_key_owner: Memory | None = None
    taken_by: Memory | None = None


@dataclass(frozen=True)
class Proposal:
    """Verdict: store the draft as a proposal for review, which changes no live memory and takes no key."""

    may_replace: Memory | None = None


@dataclass(frozen=True)
class Forgotten:
    """Verdict: the text was forgotten for good, and no person saves it, so it is not stored."""


@dataclass(frozen=True)
class Refused:
    error: DomainError


Verdict = Known | Update | New | Proposal | Forgotten | Refused


class Beside(Protocol):
    """Interface to the stored memories of a draft's scope."""

    def key_owner(self) -> Memory | None:
        """Return the memory that has the draft's key, expired or not. At most one has it."""

    def same(self) -> Similar[Memory]:
        """Return the live duplicate of the draft, or the memory that says nearly the same with another value.

        For a draft with a key, memories with other keys are no duplicates, because the draft's key would be lost.
        """


@dataclass(frozen=True)
class Stored:
    """An implementation of ``Beside`` for one draft that queries the database, limited to primary keys below
    ``before``.
    """

    said: Draft | Memory
    embedded: Embedded | None
    now: datetime
    near: bool = True
    before: int = MOST_KEYS

    def key_owner(self) -> Memory | None:
        key_owner = find_key_owner(self.said)
        return None if key_owner == self.said else key_owner

    def same(self) -> Similar[Memory]:
        if equal := find_equal(self.said, self.now, before=self.before):
            return Similar(duplicate=equal)
        if self.embedded is None or not self.near:
            return Similar()
        return find_similar(
            self.said.content,
            self.embedded,
            self.said,
            now=self.now,
            threshold=settings.DEDUPE_THRESHOLD,
            before=self.before,
            key=self.said.key,
        )


def decide(
    said: Draft | Memory, beside: Beside, *, now: datetime, forgotten: bool, forced: bool = False
) -> Verdict:
    """Return the verdict on a draft or a deleted row.

    ``forced`` stores a new row even if it is a duplicate, and moves the key to it. Costs the queries of ``beside``.
    """
    if forgotten:
        return Forgotten()
    comes_back = isinstance(said, Memory) and said.deleted_at is not None
    waits = isinstance(said, Draft) and said.waits_for_review
    if comes_back and (error := _secret_in(said)):
        return Refused(error)
    key_owner = beside.key_owner() if said.key else None
    namesake = key_owner if key_owner is not None and not _gave_up(key_owner, said, now) else None
    if forced and not waits:
        return New(taken_by=namesake) if comes_back and namesake else New(previous_key_owner=key_owner)
    if namesake is not None and not waits and not comes_back:
        return Update(namesake)
    found = beside.same()
    known = found.duplicate
    if known is not None and (said.key is None or known == key_owner):
        return Known(known)
    if comes_back and namesake is not None:
        return Refused(Conflict(KEY_TAKEN))
    if waits:
        return Proposal(found.possible_update)
    return (
        Update(known, previous_key_owner=key_owner)
        if known is not None
        else New(found.possible_update, previous_key_owner=key_owner)
    )


def _gave_up(key_owner: Memory, said: Draft | Memory, now: datetime) -> bool:
    """Return whether the key may be taken from its owner: the owner has expired, or has ended while the new text still
    holds.
    """
    return key_owner.has_expired(now) or (key_owner.is_over(now) and not said.is_over(now))


def _secret_in(said: Draft | Memory) -> SecretRefused | None:
    """Return the refusal if the current rules find a secret in a text that was stored under older rules."""
    try:
        refuse_delicate({name: getattr(said, name) for name in TEXTS}, personal=False)
    except SecretRefused as error:
        return error
    return None
