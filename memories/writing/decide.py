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
from memories.writing.similar import MOST_KEYS, Similar, find_equal, find_holder, find_similar
from memoryhub.errors import Conflict, DomainError, SecretRefused
from workspaces.index.embedding import Embedded

KEY_TAKEN = later("Another memory now has this key. Reject this one, or edit the other.")


@dataclass(frozen=True)
class Known:
    """``memory`` says it already: nothing is stored, but for what was said in other words."""

    memory: Memory


@dataclass(frozen=True)
class Update:
    """``memory`` changes in place: its key was named, or it says the same, has no key and gets this one.

    ``giver`` has expired, or is over, and has the key still: it gives it up first. So below.
    """

    memory: Memory
    giver: Memory | None = None


@dataclass(frozen=True)
class New:
    """A row of its own, without its key where that is ``taken_by`` another, which a row that comes back respects."""

    may_replace: Memory | None = None
    giver: Memory | None = None
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
    """What is in the table where a text goes: same workspace, scope, owner and assistant."""

    def holder(self) -> Memory | None:
        """Who has its key, though expired; a key has one at most."""

    def same(self) -> Similar[Memory]:
        """The live one that says it already, or says nearly the same with another value.

        To a text with a key those of other keys are no duplicates, or its key would be lost to them.
        """


@dataclass(frozen=True)
class Stored:
    """``Beside`` one text, looked up when it is asked for; of rows of keys below ``before`` where that is given."""

    said: Draft | Memory
    embedded: Embedded | None
    now: datetime
    near: bool = True
    before: int = MOST_KEYS

    def holder(self) -> Memory | None:
        holder = find_holder(self.said)
        return None if holder == self.said else holder

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
    """``forced``: a row of its own whatever is there, and a draft's key moves to it. Costs what ``beside`` asks."""
    if forgotten:
        return Forgotten()
    comes_back = isinstance(said, Memory) and said.deleted_at is not None
    waits = isinstance(said, Draft) and said.waits_for_review
    if comes_back and (error := _secret_in(said)):
        return Refused(error)
    holder = beside.holder() if said.key else None
    namesake = holder if holder is not None and not _gave_up(holder, said, now) else None
    if forced and not waits:
        return New(taken_by=namesake) if comes_back and namesake else New(giver=holder)
    if namesake is not None and not waits and not comes_back:
        return Update(namesake)
    found = beside.same()
    known = found.duplicate
    if known is not None and (said.key is None or known == holder):
        return Known(known)
    if comes_back and namesake is not None:
        return Refused(Conflict(KEY_TAKEN))
    if waits:
        return Proposal(found.possible_update)
    return Update(known, giver=holder) if known is not None else New(found.possible_update, giver=holder)


def _gave_up(holder: Memory, said: Draft | Memory, now: datetime) -> bool:
    """Whether its key is free for this: it has expired, or holds no more where this does."""
    return holder.has_expired(now) or (holder.is_over(now) and not said.is_over(now))


def _secret_in(said: Draft | Memory) -> SecretRefused | None:
    """What was stored under older rules meets today's."""
    try:
        refuse_delicate({name: getattr(said, name) for name in TEXTS}, personal=False)
    except SecretRefused as error:
        return error
    return None
