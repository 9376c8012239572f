"""Where a memory may find its double: among the live ones of its workspace, scope, owner and assistant."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from memories.drafts import Draft
from memories.models import Memory
from memoryhub import prepared
from workspaces.models import Workspace

_LOCK = "SELECT 1 FROM pg_advisory_xact_lock(hashtext('memories'), %(workspace)s::int)"


def one_writer_at_a_time(workspace: Workspace) -> None:
    """Two equal saves at the same instant store one row: writers of one workspace queue up until commit."""
    prepared.rows(_LOCK, {"workspace": workspace.pk % 2**31})


def rows_beside(draft: Draft, now: datetime) -> QuerySet[Memory]:
    """The live memories among which a draft may find its double: same workspace, scope, owner and assistant."""
    return Memory.objects.live(now).filter(
        workspace=draft.workspace, scope=draft.scope, owner=draft.owner, agent=draft.agent
    )


def beside(memory: Memory, now: datetime) -> QuerySet[Memory]:
    """The live memories of the same workspace, scope, owner and assistant, itself included."""
    return Memory.objects.live(now).filter(
        workspace_id=memory.workspace_id,
        scope=memory.scope,
        owner_id=memory.owner_id,
        agent=memory.agent_id,
    )
