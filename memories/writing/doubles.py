"""Where a memory may find its double: among the live ones of its workspace, scope, owner and assistant."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from memories.models import Memory
from memories.models.memory import PLACE, MemoryQuerySet
from memories.writing.drafts import Draft
from memoryhub.database import queries
from workspaces.models import Workspace

# A place says workspace, scope, owner and assistant; the workspace is there for the index. To a text with a key those
# of other keys are none. What is over is no double of what holds.
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
    """Two equal saves at the same instant store one row: writers of one workspace queue up until commit."""
    queries.rows(_LOCK, {"workspace": workspace.pk % 2**31})


def one_import_at_a_time() -> None:
    """Imports bring public ids along. Two at once would both find one free, and one would fail."""
    queries.rows(_LOCK_IDS, {})


def rows_beside(draft: Draft, now: datetime) -> MemoryQuerySet:
    """The live memories among which a draft may find its double: same workspace, scope, owner and assistant."""
    return Memory.objects.live(now).filter(
        workspace=draft.workspace, scope=draft.scope, owner=draft.owner, agent=draft.agent
    )


def holders_beside(draft: Draft, keys: Collection[str]) -> QuerySet[Memory]:
    """Return the memories with these keys in the draft's place, expired ones too."""
    owner, agent = draft.owner, draft.agent
    return Memory.objects.filter(
        workspace=draft.workspace, owner=owner, agent=agent, key__in=keys, deleted_at=None
    )


def find_holder(said: Draft | Memory, *, key: str | None = None) -> Memory | None:
    """Who has this key (left out: its own) in its place, though expired.

    Locked until commit, so that nobody deletes it meanwhile.
    """
    found = queries.rows(
        _HOLDER, {"workspace": said.workspace_id, "place": said.place, "key": key or said.key}
    )
    return _first(found, said)


def find_equal(said: Draft | Memory, now: datetime, *, before: int) -> Memory | None:
    """The newest in its place that says the same, word for word but for case and spacing; of keys below ``before``."""
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
    # None as well where it was forgotten for good just now.
    return Memory.objects.filter(pk=found[0][0], workspace=said.workspace_id).first() if found else None
