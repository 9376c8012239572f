"""Access to a memory that a person may see, and whether automatic memory may run for them."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.models import Memory
from memoryhub.database.queries import Ready
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
    """Return a memory by its public id. One query.

    Raises NotFound if this person may not see it or it is outside ``workspace``, and Forbidden if their role is below
    ``need``.
    """
    asked: dict[str, Any] = {"user": user.pk, "public_id": public_id}
    if not include_deleted:
        asked["now"] = timezone.now()
    if workspace is not None:
        asked["workspace"] = workspace.pk
    memory = _ready(tuple((name, type(value)) for name, value in asked.items())).first(**asked)
    if memory is None:
        raise NotFound(_("This memory does not exist, or you do not have access to it."))
    role: str = memory.role  # type: ignore[attr-defined]  # annotated
    require(role, need)
    return memory


@cache
def _ready(kinds: tuple[tuple[str, type], ...]) -> Ready[Memory]:
    return Ready(_found, **dict(kinds))


def _found(
    user: int, public_id: str, now: datetime | None = None, workspace: int | None = None
) -> QuerySet[Memory]:
    """Return the memory as a queryset; with ``now``, only if it is live at that time."""
    memories = Memory.objects.visible_to(User(pk=user)).listed().filter(public_id=public_id)
    if now is not None:
        memories = memories.live(now)
    if workspace is not None:
        memories = memories.filter(workspace=workspace)
    return memories.annotate(role=F("workspace__memberships__role"))


# Rules for whether automatic memory (injection and extraction) may run. Explicit actions are always allowed.


def vetoed() -> bool:
    """Return whether the operator has switched automatic memory off for everyone."""
    return settings.MEMORY_ENABLED is False


def memory_on(user: User, chat_value: bool | None) -> bool:
    """Return whether automatic memory is on in a chat.

    The operator's veto comes first, then the chat's setting, the person's default and the operator's default; otherwise
    it is off.
    """
    if vetoed():
        return False
    for choice in (chat_value, user.memory_default, settings.MEMORY_ENABLED):
        if choice is not None:
            return choice
    return False


def must_ask(user: User) -> bool:
    """Return whether the person still has to answer the first-run question, which the operator may answer for
    everyone.
    """
    return user.memory_default is None and settings.MEMORY_ENABLED is None
