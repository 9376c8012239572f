"""The counts and lists of the memory panel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memories.models import Memory, Scope
from memories.models.memory import AUTOMATIC, MemoryQuerySet
from memoryhub.database.queries import Ready
from workspaces.models import User, Workspace


def _live(workspace: int, user: int, now: datetime) -> MemoryQuerySet:
    return live_in(Workspace(pk=workspace), User(pk=user), now).order_by()


_KINDS: dict[str, type] = {"workspace": int, "user": int, "now": datetime}
_LIVE = Ready(_live, **_KINDS)
_LIVE_OF_ALL = Ready(lambda **asked: _live(**asked).filter(owner=None), **_KINDS)


@dataclass(frozen=True)
class Usage:
    """The number of automatic memories and their limit (0: no limit)."""

    automatic: int
    cap: int

    @property
    def is_near(self) -> bool:
        """Return whether at least 80 % of the limit are used, so that the panel mentions it."""
        return self.percent >= 80

    @property
    def percent(self) -> int:
        return min(100, round(100 * self.automatic / self.cap)) if self.cap else 0


def live_in(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """Return the live memories of one workspace that this person may see, as shown in badge, panel and lists."""
    return Memory.objects.visible_to(user).live(now).filter(workspace=workspace)


def count_live(workspace: Workspace, user: User, *, personal: bool, now: datetime) -> int:
    """Count the live memories of a workspace; without ``personal``, only the shared ones."""
    counted = _LIVE if personal else _LIVE_OF_ALL
    return counted.count(workspace=workspace.pk, user=user.pk, now=now)


def own_elsewhere(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """Return this person's live personal memories stored in other workspaces, which are recalled in this one too."""
    own = Memory.objects.visible_to(user).live(now).filter(owner=user, scope=Scope.USER)
    return own.exclude(workspace=workspace)


def count_listed(workspace: Workspace, user: User, *, now: datetime) -> int:
    """Count the memories that the panel lists: the workspace's and this person's own. Two queries."""
    here = count_live(workspace, user, personal=True, now=now)
    return here + own_elsewhere(workspace, user, now).order_by().count()


def usage(workspace: Workspace, user: User) -> Usage:
    automatic = live_in(workspace, user).filter(AUTOMATIC, agent=None)
    return Usage(automatic.count(), settings.MAX_MEMORIES)
