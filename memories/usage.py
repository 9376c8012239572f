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
    """Automatic memories against their cap (0: no cap)."""

    automatic: int
    cap: int

    @property
    def is_near(self) -> bool:
        """Whether the cap is worth a word: four fifths of it are used."""
        return self.percent >= 80

    @property
    def percent(self) -> int:
        return min(100, round(100 * self.automatic / self.cap)) if self.cap else 0


def live_in(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """The live memories of one workspace that this person may see: what badge, panel and lists are made of."""
    return Memory.objects.visible_to(user).live(now).filter(workspace=workspace)


def count_live(workspace: Workspace, user: User, *, personal: bool, now: datetime) -> int:
    """Without ``personal``, what nobody has for themselves alone."""
    counted = _LIVE if personal else _LIVE_OF_ALL
    return counted.count(workspace=workspace.pk, user=user.pk, now=now)


def own_elsewhere(workspace: Workspace, user: User, now: datetime | None = None) -> MemoryQuerySet:
    """This person's live personal memories that lie in another workspace: they follow them into this one."""
    own = Memory.objects.visible_to(user).live(now).filter(owner=user, scope=Scope.USER)
    return own.exclude(workspace=workspace)


def count_listed(workspace: Workspace, user: User, *, now: datetime) -> int:
    """Count what the panel lists: the workspace's memories and this person's own. Two queries."""
    here = count_live(workspace, user, personal=True, now=now)
    return here + own_elsewhere(workspace, user, now).order_by().count()


def usage(workspace: Workspace, user: User) -> Usage:
    automatic = live_in(workspace, user).filter(AUTOMATIC, agent=None)
    return Usage(automatic.count(), settings.MAX_MEMORIES)
