"""Rows that belong to a workspace or to one person alone: documents, their passages, artifacts."""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models
from django.db.models import F, Q

from workspaces.index.places import place_of
from workspaces.models.people import User

M = TypeVar("M", bound=models.Model, covariant=True)
OWNED_PLACE = "coalesce(-m.owner_id, m.workspace_id)"  # place_of(…, owner_id=…) in SQL
OWNED_HERE = "m.workspace_id = %(workspace)s::bigint AND m.owner_id IS NULL"  # Kind.here and Kind.own
OWNED_OWN = "m.owner_id = %(user)s::bigint AND -(%(user)s::bigint) = ANY(%(places)s::bigint[])"
OWNER_HELP = (
    "Who alone sees it, in every workspace. It lies in their own one. Empty: every member of the workspace."
)


class Owned:
    """Row with its workspace, and its owner if it is one person's alone."""

    workspace_id: int
    owner_id: int | None

    @property
    def place(self) -> int:
        """Return its scope in the index; the same in SQL is ``OWNED_PLACE``."""
        return place_of(self.workspace_id, owner_id=self.owner_id)

    @property
    def is_personal(self) -> bool:
        return self.owner_id is not None


class OwnedQuerySet(models.QuerySet[M]):
    """Rows with a ``workspace``, and an ``owner`` where they are one person's alone."""

    def live(self) -> Self:
        return self.filter(deleted_at=None)

    def visible_to(self, user: User) -> Self:
        """Return those of this person's workspaces, but personal ones only their own; each with the ``role`` there."""
        mine = self.filter(Q(owner=None) | Q(owner=user), workspace__memberships__user=user)
        return mine.annotate(role=F("workspace__memberships__role"))
