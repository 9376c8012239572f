"""Where a text that was forgotten for good still stands, without a word of it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memories.models.memory import Memory


class CopyKind(models.TextChoices):
    MEMORY = "memory", later("It says so itself, and is deleted")
    EXCERPT = "excerpt", later("The messages around its origin")
    REVISION = "revision", later("An earlier version")
    ITEM = "item", later("What an answer noted of it")


class KeptCopy(models.Model):
    """A copy that whoever forgot the text may not forget: a note for those who may. By ``forgetting.copies``."""

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
