"""Where a memory may find its double: among the live ones of its workspace, scope, owner and assistant."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from memories.models import Memory
from memories.models.memory import PLACE
from memories.writing.drafts import Draft, content_hash
from memoryhub import prepared
from workspaces.models import Workspace

# A place says workspace, scope, owner and assistant; the workspace is there for the index.
_EQUAL = f"""
SELECT id FROM memories_memory
WHERE workspace_id = %(workspace)s::bigint AND content_hash = %(hash)s::text AND {PLACE} = %(place)s::bigint
  AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s::timestamptz)
ORDER BY created_at DESC, id DESC LIMIT 1
"""  # noqa: S608  constants only
_LOCK = "SELECT 1 FROM pg_advisory_xact_lock(hashtext('memories'), %(workspace)s::int)"


def one_writer_at_a_time(workspace: Workspace) -> None:
    """Two equal saves at the same instant store one row: writers of one workspace queue up until commit."""
    prepared.rows(_LOCK, {"workspace": workspace.pk % 2**31})


def rows_beside(draft: Draft, now: datetime) -> QuerySet[Memory]:
    """The live memories among which a draft may find its double: same workspace, scope, owner and assistant."""
    return Memory.objects.live(now).filter(
        workspace=draft.workspace, scope=draft.scope, owner=draft.owner, agent=draft.agent
    )


def find_by_key(draft: Draft, now: datetime) -> Memory | None:
    """What its key names already: of several, the one that was changed last."""
    return rows_beside(draft, now).filter(key=draft.key).order_by("-updated_at").first()


def find_equal(draft: Draft, now: datetime) -> Memory | None:
    """The newest of ``rows_beside`` that says the same, word for word but for case and spacing. One query."""
    given = {
        "workspace": draft.workspace.pk,
        "place": draft.place,
        "hash": content_hash(draft.content),
        "now": now,
    }
    found = prepared.rows(_EQUAL, given)
    # None as well where it was forgotten for good just now.
    return Memory.objects.filter(pk=found[0][0]).first() if found else None


def beside(memory: Memory, now: datetime) -> QuerySet[Memory]:
    """The live memories of the same workspace, scope, owner and assistant, itself included."""
    return Memory.objects.live(now).filter(
        workspace_id=memory.workspace_id,
        scope=memory.scope,
        owner_id=memory.owner_id,
        agent=memory.agent_id,
    )
