"""Search for the nearest live memories of a text, to find its duplicate or the older statement that it may replace.

Only memories of the same workspace, scope, owner and assistant are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import QuerySet

from memories.judging.duplicates import may_merge
from memories.models import Memory
from memories.models.memory import PLACE, MemoryQuerySet
from memories.writing.drafts import Draft
from memoryhub.database import queries
from memoryhub.llm.registry import get_reader
from memoryhub.llm.two_encoders import ENGLISH, TwoEncoders
from workspaces.index.embedding import Embedded
from workspaces.models import Workspace

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
SELECT m.id, m.content, m.key, cosine FROM nearest JOIN memories_memory m ON m.id = ref
WHERE m.workspace_id = %(workspace)s::bigint AND cosine >= %(least)s::float8 AND m.id < %(before)s::bigint
  AND m.deleted_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > %(now)s::timestamptz)
  AND (m.valid_to IS NOT NULL AND m.valid_to <= %(now)s::timestamptz) = %(over)s::boolean
ORDER BY cosine DESC
"""  # noqa: S608  constants only


M = TypeVar("M", "Stored", Memory)


@dataclass(frozen=True)
class Similar(Generic[M]):
    duplicate: M | None = None
    possible_update: M | None = None


class Stored(NamedTuple):
    """The columns of a memory that are compared."""

    pk: int
    content: str
    key: str | None


def find_similar(
    content: str,
    embedded: Embedded,
    said: Draft | Memory,
    *,
    now: datetime,
    threshold: float,
    before: int = MOST_KEYS,
    key: str | None = None,
) -> Similar[Memory]:
    """Find the duplicate or the possible update of a text among the live memories of its scope with keys below
    ``before``.

    A memory is a duplicate if its similarity reaches ``threshold``, by these vectors or by the encoder, and the guard
    allows merging. A near memory with another number, date, name or negation is a possible update, however near.
    """
    near = nearest(embedded, said, now=now, least=min(threshold, LEAST), before=before)
    found = judge(content, near, threshold=threshold, key=key)
    return Similar(_loaded(found.duplicate, said), _loaded(found.possible_update, said))


def nearest(
    embedded: Embedded, said: Draft | Memory, *, now: datetime, least: float, before: int = MOST_KEYS
) -> list[tuple[Stored, float]]:
    """Return up to ``NEAREST`` live memories of the scope with a cosine of at least ``least``, best first."""
    given = {
        "place": said.place,
        "workspace": said.workspace_id,
        "model": embedded.model,
        "dimension": len(embedded.statement),
        "vector": queries.halfvec(embedded.statement),
        "least": least,
        "now": now,
        "over": said.is_over(now),
        "before": before,
    }
    rows = queries.rows(_NEAREST, given)
    return [(Stored(pk, text, own_key), cosine) for pk, text, own_key, cosine in rows]


def fits(memory: Stored | Memory, key: str | None) -> bool:
    """Return whether a text with this key may be merged into the memory. Memories with different keys never merge."""
    return key is None or memory.key in (None, key)


def _loaded(stored: Stored | None, said: Draft | Memory) -> Memory | None:
    return Memory.objects.filter(pk=stored.pk, workspace=said.workspace_id).first() if stored else None


def judge(
    content: str, near: Sequence[tuple[M, float]], *, threshold: float, key: str | None = None
) -> Similar[M]:
    """Return how a text relates to its nearest live memories, given with their cosines, best first.

    For a text with a key, memories with other keys are no duplicates.
    """
    possible_update: M | None = None
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


# A place identifies workspace, scope, owner and assistant; the workspace is repeated for the index. Memories with
# different keys are no duplicates, nor are an ended memory and one that still holds.
_EQUAL = f"""
SELECT id FROM memories_memory
WHERE workspace_id = %(workspace)s::bigint AND content_hash = %(hash)s::text AND {PLACE} = %(place)s::bigint
  AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s::timestamptz) AND id < %(before)s::bigint
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
    """Lock the workspace for writers until commit, so that two equal concurrent saves store only one row."""
    queries.rows(_LOCK, {"workspace": workspace.pk % 2**31})


def one_import_at_a_time() -> None:
    """Lock so that only one import runs at a time.

    Imports keep the public ids of their source, and two concurrent imports could both find the same id unused.
    """
    queries.rows(_LOCK_IDS, {})


def rows_beside(draft: Draft, now: datetime) -> MemoryQuerySet:
    """Return the live memories that may be duplicates of a draft: same workspace, scope, owner and assistant."""
    return Memory.objects.live(now).filter(
        workspace=draft.workspace, scope=draft.scope, owner=draft.owner, agent=draft.agent
    )


def key_owners_beside(draft: Draft, keys: Collection[str]) -> QuerySet[Memory]:
    """Return the memories with these keys in the draft's scope, including expired ones."""
    owner, agent = draft.owner, draft.agent
    return Memory.objects.filter(
        workspace=draft.workspace, owner=owner, agent=agent, key__in=keys, deleted_at=None
    )


def find_key_owner(said: Draft | Memory, *, key: str | None = None) -> Memory | None:
    """Return the memory with this key (default: its own) in its scope, expired or not.

    The row is locked until commit, so that nobody deletes it in the meantime.
    """
    found = queries.rows(
        _HOLDER, {"workspace": said.workspace_id, "place": said.place, "key": key or said.key}
    )
    return _first(found, said)


def find_equal(said: Draft | Memory, now: datetime, *, before: int) -> Memory | None:
    """Return the newest live memory of the scope with the same ``content_hash`` and a primary key below ``before``."""
    given = {
        "workspace": said.workspace_id,
        "place": said.place,
        "hash": said.content_hash,
        "key": said.key,
        "before": before,
        "now": now,
        "over": said.is_over(now),
    }
    return _first(queries.rows(_EQUAL, given), said)


def _first(found: list[Any], said: Draft | Memory) -> Memory | None:
    # The row may have been forgotten since the first query, which also gives None.
    return Memory.objects.filter(pk=found[0][0], workspace=said.workspace_id).first() if found else None
