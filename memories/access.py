"""Load a memory a person may see, or say that it is not there."""

from __future__ import annotations

from django.db.models import F

from memories.models import Memory
from memoryhub.errors import NotFound
from workspaces.access import require
from workspaces.models import Role, User, Workspace


def get_memory(
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None = None,
    need: Role = Role.VIEWER,
    include_deleted: bool = False,
) -> Memory:
    """NotFound outside what this person may see (or outside ``workspace``), Forbidden below ``need``."""
    memories = Memory.objects.visible_to(user).listed()
    if not include_deleted:
        memories = memories.live()
    if workspace is not None:
        memories = memories.filter(workspace=workspace)
    found = memories.annotate(role=F("workspace__memberships__role")).filter(public_id=public_id)
    memory = found.first()
    if memory is None:
        raise NotFound("There is no such memory, or it is not yours to see.")
    require(memory.role, need)
    return memory
