"""The one decision: what becomes of a text, or of a row that comes back, beside what is live in its place.

Every way into the table asks ``decide`` and does what it says: the gate, many at once, review, late vectors, exchange
and restore. It stores nothing. What it asks about is behind ``Beside``, so that one text looks it up in the database
and many look at what was loaded for all of them.
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
    """Verdict: ``memory`` says the same. Nothing is stored but the other wording."""

    memory: Memory


@dataclass(frozen=True)
class Update:
    """Verdict: ``memory`` changes in place, because the draft has its key, or says the same and brings a key.

    ``previous_key_owner`` is an expired or ended memory that still has the key and loses it first.
    """

    memory: Memory
    previous_key_owner: Memory | None = None


@dataclass(frozen=True)
class New:
    """A row of its own, without its key where that is ``taken_by`` another, which a row that comes back respects."""

    may_replace: Memory | None = None
    previous_key_owner: Memory | None = None
    taken_by: Memory | None = None


@dataclass(frozen=True)
class Proposal:
    """It waits for review: a row that changes nothing of what is in use, and takes no key."""

    may_replace: Memory | None = None


@dataclass(frozen=True)
class Forgotten:
    """It was forgotten for good, and no person asks for it."""


@dataclass(frozen=True)
class Refused:
    error: DomainError


Verdict = Known | Update | New | Proposal | Forgotten | Refused


class Beside(Protocol):
    """Interface to the stored memories of a draft's scope."""

    def key_owner(self) -> Memory | None:
        """Return the memory with the draft's key, expired or not. A key belongs to one memory at most."""

    def same(self) -> Similar[Memory]:
        """The live one that says it already, or says nearly the same with another value.

        To a text with a key those of other keys are no duplicates, or its key would be lost to them.
        """


@dataclass(frozen=True)
class Stored:
    """``Beside`` for one draft, read from the database when needed; only rows with keys below ``before``, if given."""

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
    """Decide what becomes of a draft. ``forced`` stores a row of its own and moves the key to it. Costs the reads of
    ``beside``.
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
    """Whether its key is free for this: it has expired, or holds no more where this does."""
    return key_owner.has_expired(now) or (key_owner.is_over(now) and not said.is_over(now))


def _secret_in(said: Draft | Memory) -> SecretRefused | None:
    """Return the refusal if today's rules find a secret in a text that was stored under older rules."""
    try:
        refuse_delicate({name: getattr(said, name) for name in TEXTS}, personal=False)
    except SecretRefused as error:
        return error
    return None
