"""Clearings, each of which deletes all memories of a scope, with their progress."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.models.memory import Memory, MemoryQuerySet, Review, Scope
from memoryhub.ids import PublicIdField
from workspaces.models import Agent, User, Workspace


class ClearingStatus(models.TextChoices):
    CLEARING = "clearing", "Clearing"
    CLEARED = "cleared", "Cleared"
    UNDOING = "undoing", "Undoing"
    UNDONE = "undone", "Undone"
    STOPPED = "stopped", "Stopped"


AT_WORK = (ClearingStatus.CLEARING, ClearingStatus.UNDOING)


class Clearing(models.Model):
    """The state of a clearing, written only by ``memories.forgetting.clear``.

    The memories that it deleted are those of its scope whose ``deleted_at`` equals its ``started_at``.
    """

    public_id = PublicIdField(prefix="clr")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    scope = models.CharField(max_length=10, choices=Scope.choices)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    by = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="+", help_text="Who began the step at work."
    )
    as_staff = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="Begun in the admin, as a member of staff."
    )
    place = models.BigIntegerField(help_text="As of a memory.")
    for_good = models.BooleanField(default=False)
    status = models.CharField(max_length=10, choices=ClearingStatus.choices, default=ClearingStatus.CLEARING)
    total = models.PositiveIntegerField(default=0, help_text="Memories that the step at work began with.")
    done = models.PositiveIntegerField(default=0, help_text="Of the step at work: cleared or brought back.")
    left_out = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the step at work: left as they are, refused by today's rules."
    )
    after = models.BigIntegerField(
        default=0, help_text="The last memory's key that the step at work has handled."
    )
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["place"],
                condition=Q(status__in=["clearing", "undoing"]),
                name="clearing_one_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_at_work(self) -> bool:
        return self.status in AT_WORK

    @property
    def handled(self) -> int:
        return self.done + self.left_out

    @property
    def can_be_undone(self) -> bool:
        """Return whether it has ended, was soft, and some memories that it deleted are still deleted. One query."""
        ended = self.status in {ClearingStatus.CLEARED, ClearingStatus.STOPPED}
        return ended and not self.for_good and self.deleted().exists()

    def deleted(self) -> MemoryQuerySet:
        """Return the memories that it deleted, except those restored or forgotten since."""
        return self.memories().filter(deleted_at=self.started_at, review=Review.NONE)

    def memories(self) -> MemoryQuerySet:
        """Return all memories of its scope, including deleted ones."""
        return in_scope(self.workspace, self.scope, self.by, self.agent)


def in_scope(workspace: Workspace, scope: str, by: User, agent: Agent | None) -> MemoryQuerySet:
    """Return the memories of a workspace, of one of its assistants, or of a person in every workspace (personal
    ones).
    """
    if scope == Scope.USER:
        return Memory.objects.filter(scope=scope, owner=by)
    if scope == Scope.AGENT:
        return Memory.objects.filter(scope=scope, workspace=workspace, agent=agent)
    return Memory.objects.filter(scope=scope, workspace=workspace, owner=None)
