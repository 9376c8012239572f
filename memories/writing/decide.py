"""The decision what to do with a draft or a deleted memory: store, restore, update another, propose, or refuse.

``decide`` stores nothing. It reads stored memories through the interface ``Beside``: a single save queries the
database, and a bulk save uses rows loaded for the whole batch.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as later

from memories.judging.duplicates import may_merge
from memories.models import Memory
from memories.models.memory import PLACE, MemoryQuerySet, live_sql
from memories.writing.drafts import TEXTS, Draft, refuse_sensitive
from memories.writing.tombstones import WasForgotten
from memoryhub.database import queries
from memoryhub.errors import Conflict, DomainError, SecretRefused
from memoryhub.llm.bundled_embedder import ENGLISH, TwoEncoders
from memoryhub.llm.registry import get_reader
from workspaces.index.embedding import Embedded
from workspaces.models import Workspace

# Search for the nearest live memories of a text, to find its duplicate or the older statement that it may
# replace. Only memories of the same workspace, scope, owner and assistant are compared.

CANDIDATES = 50  # selected by the recall vector, then ranked by the statement vector
NEAREST = 10
MOST_KEYS = 2**63 - 1
POSSIBLE_UPDATE = 0.85  # cosine from which two statements are about the same thing (docs/recall.md)
LEAST = 0.78  # minimum cosine to check for a rewording; low, because embedders differ
MOST_READ = 3  # number of nearest memories compared word by word, a few milliseconds each
# The English part of the similarity, as in ``likeness``. It is NULL, which GREATEST ignores, for other embedders and
# for texts without English.
_PART = f"subvector({{}}, 1, {ENGLISH.stop})"
_PARTS = f"{_PART.format('coalesce(statement, embedding)')} <=> {_PART.format('%(vector)s::halfvec')}"
_ENGLISH = f"CASE WHEN %(dimension)s::int = {TwoEncoders.dimension} THEN nullif(1 - ({_PARTS}), 'NaN') END"
_NEAREST = f"""
WITH near AS MATERIALIZED (
    SELECT id FROM workspaces_passagevector
    WHERE live AND kind = 1 AND place = %(place)s::bigint AND model = %(model)s::text AND dimension = %(dimension)s::int
    ORDER BY embedding <=> %(vector)s::halfvec LIMIT {CANDIDATES}
), nearest AS MATERIALIZED (
    SELECT ref, greatest(1 - (coalesce(statement, embedding) <=> %(vector)s::halfvec), {_ENGLISH}) AS cosine
    FROM near JOIN workspaces_passagevector USING (id) WHERE place = %(place)s::bigint
    ORDER BY cosine DESC LIMIT {NEAREST}
)
SELECT m.id, cosine FROM nearest JOIN memories_memory m ON m.id = ref
WHERE m.workspace_id = %(workspace)s::bigint AND cosine >= %(least)s::float8 AND m.id < %(before)s::bigint
  AND {live_sql()}
  AND (m.valid_to IS NOT NULL AND m.valid_to <= %(now)s::timestamptz) = %(over)s::boolean
ORDER BY cosine DESC
"""  # noqa: S608  constants only


@dataclass(frozen=True)
class Similar:
    duplicate: Memory | None = None
    possible_update: Memory | None = None


def nearest(
    embedded: Embedded, candidate: Draft | Memory, *, now: datetime, least: float, before: int = MOST_KEYS
) -> list[tuple[int, float]]:
    """Return up to ``NEAREST`` live memories of the scope as (primary key, cosine), best first.

    Their cosine is at least ``least``. One query.
    """
    params = {
        "place": candidate.place,
        "workspace": candidate.workspace_id,
        "model": embedded.model,
        "dimension": len(embedded.statement),
        "vector": embedded.statement,
        "least": least,
        "now": now,
        "over": candidate.is_over(now),
        "before": before,
    }
    return queries.rows(_NEAREST, params)


def fits(memory: Memory, key: str | None) -> bool:
    """Return whether a text with this key may be merged into the memory, which must have no other key."""
    return key is None or memory.key in (None, key)


def judge(content: str, near: Sequence[tuple[Memory, float]], *, key: str | None) -> Similar:
    """Return the duplicate or possible update of a text among ``near``: memories with their cosines, best first.

    A duplicate has no other key, ``may_merge`` allows it, and its cosine of the stored vectors or of the encoder's
    reaches the threshold. A possible update is similar, and has another number, date, name or negation.
    """
    threshold = settings.DEDUPE_THRESHOLD
    possible_update: Memory | None = None
    for memory, cosine in near[:MOST_READ]:
        if cosine < min(threshold, LEAST):
            break
        least = 0.0 if cosine >= threshold else threshold
        mergeable = may_merge(memory.content, content, get_reader(), least=least)
        if mergeable and fits(memory, key):
            return Similar(duplicate=memory)
        if cosine >= POSSIBLE_UPDATE and not mergeable and possible_update is None:
            possible_update = memory
    return Similar(possible_update=possible_update)


# The place (scope number) identifies workspace, owner and assistant; the workspace is repeated for the index. Memories
# with different keys are no duplicates, nor are an ended memory and one that is still valid.
_EQUAL = f"""
SELECT id FROM memories_memory
WHERE workspace_id = %(workspace)s::bigint AND content_hash = %(hash)s::text AND {PLACE} = %(place)s::bigint
  AND {live_sql("memories_memory")} AND id < %(before)s::bigint
  AND (valid_to IS NOT NULL AND valid_to <= %(now)s::timestamptz) = %(over)s::boolean
  AND (%(key)s::text IS NULL OR key IS NULL OR key = %(key)s::text)
ORDER BY (%(key)s::text IS NOT NULL AND key IS NULL), created_at DESC, id DESC LIMIT 1
"""  # noqa: S608  constants only
_HOLDER = f"""
SELECT id FROM memories_memory
WHERE workspace_id = %(workspace)s::bigint AND key = %(key)s::text AND {PLACE} = %(place)s::bigint
  AND deleted_at IS NULL FOR UPDATE
"""  # noqa: S608  constants only
_LOCK_IDS = "SELECT 1 FROM pg_advisory_xact_lock(hashtext('memories.public_id'))"
_LOCK = "SELECT 1 FROM pg_advisory_xact_lock(hashtext('memories'), %(workspace)s::int)"


def one_writer_at_a_time(workspace: Workspace) -> None:
    """Lock the workspace for writers until commit, so that of two equal concurrent saves only one stores a row."""
    queries.rows(_LOCK, {"workspace": workspace.pk % 2**31})


def one_import_at_a_time() -> None:
    """Lock imports until commit, because two concurrent ones could both find the same public id unused."""
    queries.rows(_LOCK_IDS, {})


def rows_beside(draft: Draft, now: datetime) -> MemoryQuerySet:
    """Return the live memories that a draft may duplicate: those of its workspace, scope, owner and assistant."""
    return Memory.objects.live(now).filter(
        workspace=draft.workspace, scope=draft.scope, owner=draft.owner, agent=draft.agent
    )


def key_owners_beside(draft: Draft, keys: Collection[str]) -> QuerySet[Memory]:
    """Return the memories with these keys in the draft's scope, including expired ones."""
    rows = Memory.objects.filter(workspace=draft.workspace, owner=draft.owner, agent=draft.agent)
    return rows.filter(key__in=keys, deleted_at=None)


def find_key_owner(candidate: Draft | Memory, *, key: str | None = None) -> Memory | None:
    """Return the memory that has this key (default: the candidate's) in its scope, even an expired one. Locks it."""
    params = {"workspace": candidate.workspace_id, "place": candidate.place, "key": key or candidate.key}
    return _first(queries.rows(_HOLDER, params), candidate)


def find_equal(candidate: Draft | Memory, now: datetime, *, before: int) -> Memory | None:
    """Return a live memory of the scope with the same text and a primary key below ``before``, or None.

    Both must have ended or neither, and their keys must not differ. One with the same key comes first, then the newest.
    """
    params = {
        "workspace": candidate.workspace_id,
        "place": candidate.place,
        "hash": candidate.content_hash,
        "key": candidate.key,
        "before": before,
        "now": now,
        "over": candidate.is_over(now),
    }
    return _first(queries.rows(_EQUAL, params), candidate)


def _first(rows: list[Any], candidate: Draft | Memory) -> Memory | None:
    # The row may have been forgotten since the first query, which also gives None.
    return Memory.objects.filter(pk=rows[0][0], workspace=candidate.workspace_id).first() if rows else None


KEY_TAKEN = later("Another memory now has this key. Reject this one, or edit the other.")


@dataclass(frozen=True)
class Known:
    """Verdict: the draft duplicates ``memory``. Only its wording is recorded, in that memory's history."""

    memory: Memory


@dataclass(frozen=True)
class Update:
    """Verdict: update ``memory`` in place, because it has the draft's key, or says the same and has no key yet."""

    memory: Memory
    previous_key_owner: Memory | None = None  # an expired or ended memory, which must lose the key first


@dataclass(frozen=True)
class New:
    """Verdict: store the draft as a new row, or restore the deleted memory."""

    may_replace: Memory | None = None
    previous_key_owner: Memory | None = None  # loses its key to the row
    taken_by: Memory | None = None  # has the key of the restored memory, which loses it


@dataclass(frozen=True)
class Proposal:
    """Verdict: store the draft as a proposal for review. It changes no live memory and takes no key."""

    may_replace: Memory | None = None


@dataclass(frozen=True)
class Refused:
    """Verdict: do not store the text, for example with WasForgotten, because a program saves a forgotten text."""

    error: DomainError


Verdict = Known | Update | New | Proposal | Refused


class Beside(Protocol):
    """Interface to the stored memories in a draft's scope."""

    def key_owner(self) -> Memory | None:
        """Return the memory that has the draft's key, even if it has expired."""

    def same(self) -> Similar:
        """Return the live duplicate of the draft, or a memory that says nearly the same with another value."""


@dataclass(frozen=True)
class Stored:
    """An implementation of ``Beside`` that queries the database for memories with a primary key below ``before``."""

    said: Draft | Memory
    embedded: Embedded | None
    now: datetime
    near: bool = True
    before: int = MOST_KEYS

    def key_owner(self) -> Memory | None:
        key_owner = find_key_owner(self.said)
        return None if key_owner == self.said else key_owner

    def same(self) -> Similar:
        if equal := find_equal(self.said, self.now, before=self.before):
            return Similar(duplicate=equal)
        if self.embedded is None or not self.near:
            return Similar()
        least = min(settings.DEDUPE_THRESHOLD, LEAST)
        near = nearest(self.embedded, self.said, now=self.now, least=least, before=self.before)[:MOST_READ]
        rows = Memory.objects.filter(workspace=self.said.workspace_id).defer("search")
        memories = rows.in_bulk([pk for pk, _ in near])
        read = [(memories[pk], cosine) for pk, cosine in near if pk in memories]
        return judge(self.said.content, read, key=self.said.key)


def decide(
    candidate: Draft | Memory, beside: Beside, *, now: datetime, forgotten: bool, forced: bool = False
) -> Verdict:
    """Return the verdict on a draft or a deleted memory.

    ``forgotten``: a tombstone forbids the text. ``forced``: store a new row even if it is a duplicate, and move the key
    to it. Costs the queries of ``beside``.
    """
    if forgotten:
        return Refused(WasForgotten())
    comes_back = isinstance(candidate, Memory) and candidate.deleted_at is not None
    waits = isinstance(candidate, Draft) and candidate.waits_for_review
    if comes_back and (error := _secret_in(candidate)):
        return Refused(error)
    namesake = key_owner = beside.key_owner() if candidate.key else None
    # An expired owner loses the key, and one that has ended to a text that is still valid.
    if key_owner and (key_owner.has_expired(now) or (key_owner.is_over(now) and not candidate.is_over(now))):
        namesake = None
    if forced and not waits:
        return New(taken_by=namesake) if comes_back and namesake else New(previous_key_owner=key_owner)
    if namesake is not None and not waits and not comes_back:
        return Update(namesake)
    similar = beside.same()
    known = similar.duplicate
    if known is not None and (candidate.key is None or known == key_owner):
        return Known(known)
    if comes_back and namesake is not None:
        return Refused(Conflict(KEY_TAKEN))
    if waits:
        return Proposal(similar.possible_update)
    if known is not None:
        return Update(known, previous_key_owner=key_owner)
    return New(similar.possible_update, previous_key_owner=key_owner)


def _secret_in(candidate: Draft | Memory) -> SecretRefused | None:
    """Return the error if the current rules find a credential in a text that older rules let through."""
    try:
        refuse_sensitive({name: getattr(candidate, name) for name in TEXTS}, personal=False)
    except SecretRefused as error:
        return error
    return None
