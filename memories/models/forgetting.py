"""Clearings, which delete all memories of a scope, and notes about copies of forgotten texts."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

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
    """The state of a clearing. Memories that a soft clearing deleted have a ``deleted_at`` equal to ``started_at``."""

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
        """Return whether a soft clearing has ended and some memories that it deleted are still deleted. One query."""
        ended = self.status in {ClearingStatus.CLEARED, ClearingStatus.STOPPED}
        return ended and not self.for_good and self.deleted().exists()

    def deleted(self) -> MemoryQuerySet:
        """Return the memories that a soft clearing deleted, without those restored or removed since."""
        return self.memories().filter(deleted_at=self.started_at, review=Review.NONE)

    def memories(self) -> MemoryQuerySet:
        return in_scope(self.workspace, self.scope, self.by, self.agent)


def in_scope(workspace: Workspace, scope: str, by: User, agent: Agent | None) -> MemoryQuerySet:
    """Return all memories of the person, of the workspace or of ``agent``, as ``scope`` says, also deleted ones."""
    if scope == Scope.USER:
        return Memory.objects.filter(scope=scope, owner=by)
    if scope == Scope.AGENT:
        return Memory.objects.filter(scope=scope, workspace=workspace, agent=agent)
    return Memory.objects.filter(scope=scope, workspace=workspace, owner=None)


class CopyKind(models.TextChoices):
    MEMORY = "memory", later("It says so itself, and is deleted")
    EXCERPT = "excerpt", later("The messages around its origin")
    REVISION = "revision", later("An earlier version")
    ITEM = "item", later("What an answer noted of it")


class KeptCopy(models.Model):
    """A note, without the text, that a memory contains a copy of a forgotten text.

    The person who forgot the text had no right to remove this copy. People with that right see the note and decide.
    """

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="kept_copies")
    kind = models.CharField(max_length=10, choices=CopyKind.choices)
    row_id = models.BigIntegerField(default=0, help_text="Of the revision or the receipt's item.")
    noted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "kept copies"
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["memory", "kind", "row_id"], name="one_note_a_copy")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.memory_id}"


class KeptAsIs(models.Model):
    """A person's decision that a memory is still valid, or that it and the older memory ``other`` both are."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="kept_as_is")
    other = models.ForeignKey(Memory, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    texts = models.CharField(
        max_length=130, help_text="Hashes of what they said then: new words are new doubts."
    )
    was_linked = models.BooleanField(default=False, help_text="The newer was marked as replacing the older.")
    by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "kept as they are"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                "memory",
                Coalesce("other", 0, output_field=models.BigIntegerField()),
                name="kept_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} beside {self.other_id}" if self.other_id else str(self.memory_id)
