"""Access checks and queries for memories, and the rules that switch automatic memory on or off."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.models import Memory, Scope
from memories.models.memory import AUTOMATIC, MemoryQuerySet
from memoryhub.database.queries import PreparedQuery
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

    ``include_deleted`` also finds deleted and expired ones. Raises NotFound if this person may not see it or it is
    outside ``workspace``, and Forbidden if their role is below ``need``.
    """
    params: dict[str, Any] = {"user": user.pk, "public_id": public_id}
    if not include_deleted:
        params["now"] = timezone.now()
    if workspace is not None:
        params["workspace"] = workspace.pk
    memory = _ready(tuple((name, type(value)) for name, value in params.items())).first(**params)
    if memory is None:
        raise NotFound(_("This memory does not exist, or you do not have access to it."))
    role: str = memory.role  # type: ignore[attr-defined]  # annotated
    require(role, need)
    return memory


@cache
def _ready(kinds: tuple[tuple[str, type], ...]) -> PreparedQuery[Memory]:
    return PreparedQuery(_found, **dict(kinds))


def _found(
    user: int, public_id: str, now: datetime | None = None, workspace: int | None = None
) -> QuerySet[Memory]:
    """Return a queryset of the memory with this public id, annotated with the user's ``role`` in its workspace.

    It is empty if the user may not see the memory, if the memory is not live (deleted or expired) at the time ``now``,
    or if it belongs to another workspace than the primary key ``workspace``. None leaves out the last two checks.
    """
    memories = Memory.objects.visible_to(User(pk=user)).listed().filter(public_id=public_id)
    if now is not None:
        memories = memories.live(now)
    if workspace is not None:
        memories = memories.filter(workspace=workspace)
    return memories.annotate(role=F("workspace__memberships__role"))


def vetoed() -> bool:
    """Return whether the operator has switched automatic memory off for everyone."""
    return settings.MEMORY_ENABLED is False


def memory_on(user: User, chat_value: bool | None) -> bool:
    """Return whether automatic memory is on in a chat with the setting ``chat_value`` (None: not set).

    The operator's veto decides first, then what is set: the chat's setting, the person's default, the operator's.
    """
    choices = (chat_value, user.memory_default, settings.MEMORY_ENABLED)
    return not vetoed() and next((choice for choice in choices if choice is not None), False)


def must_ask(user: User) -> bool:
    """Return whether the person must choose, because neither they nor the operator has set a default."""
    return user.memory_default is None and settings.MEMORY_ENABLED is None


def _live(workspace: int, user: int, now: datetime) -> MemoryQuerySet:
    return live_in(Workspace(pk=workspace), User(pk=user), now).order_by()


_KINDS: dict[str, type] = {"workspace": int, "user": int, "now": datetime}
_LIVE = PreparedQuery(_live, **_KINDS)
_LIVE_OF_ALL = PreparedQuery(lambda **asked: _live(**asked).filter(owner=None), **_KINDS)


@dataclass(frozen=True)
class Usage:
    """The number of automatic memories in a workspace, and their limit ``cap`` (0: no limit)."""

    automatic: int
    cap: int

    @property
    def is_near(self) -> bool:
        """Return whether at least 80 % of the limit is used. The panel then shows the usage."""
        return self.percent >= 80

    @property
    def percent(self) -> int:
        return min(100, round(100 * self.automatic / self.cap)) if self.cap else 0


def live_in(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """Return the live memories stored in a workspace that this person may see."""
    return Memory.objects.visible_to(user).live(now).filter(workspace=workspace)


def count_live(workspace: Workspace, user: User, *, personal: bool, now: datetime) -> int:
    """Count the memories of ``live_in``; without ``personal``, only the shared ones."""
    counted = _LIVE if personal else _LIVE_OF_ALL
    return counted.count(workspace=workspace.pk, user=user.pk, now=now)


def own_elsewhere(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """Return this person's live personal memories stored in other workspaces. They are recalled in this one as well."""
    own = Memory.objects.visible_to(user).live(now).filter(owner=user, scope=Scope.USER)
    return own.exclude(workspace=workspace)


def count_listed(workspace: Workspace, user: User, *, now: datetime) -> int:
    """Count what the user's memory panel lists, including personal memories from other workspaces. Two queries."""
    here = count_live(workspace, user, personal=True, now=now)
    return here + own_elsewhere(workspace, user, now).order_by().count()


def usage(workspace: Workspace, user: User) -> Usage:
    automatic = live_in(workspace, user).filter(AUTOMATIC, agent=None)
    return Usage(automatic.count(), settings.MAX_MEMORIES)
