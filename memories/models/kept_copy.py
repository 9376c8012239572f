"""Notes without text: where a forgotten text is still quoted, and which memories the Tidy page should no longer
suggest.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memories.models.memory import Memory
from workspaces.models import User


class CopyKind(models.TextChoices):
    MEMORY = "memory", later("It says so itself, and is deleted")
    EXCERPT = "excerpt", later("The messages around its origin")
    REVISION = "revision", later("An earlier version")
    ITEM = "item", later("What an answer noted of it")


class KeptCopy(models.Model):
    """A note of a copy of a forgotten text, which the person who forgot it may not remove, for the people who may.

    See ``forgetting.copies``.
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
    """A person's decision that a memory is still valid, or that it and the older ``other`` are both valid."""

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
