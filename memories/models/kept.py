"""What somebody looked at while tidying up and said stays as it is."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

from memories.models.memory import Memory
from workspaces.models import User


class KeptAsIs(models.Model):
    """A memory that is still good, or with ``other``, the older, two that may stand beside each other."""

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
