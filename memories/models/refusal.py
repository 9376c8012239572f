"""Counts of refused memories by reason, without the text."""

from __future__ import annotations

from django.db import models

from workspaces.models import Workspace

KIND_LENGTH = 40


class Refusal(models.Model):
    """A count per day, workspace, source and reason. Written only by ``memories.writing.refusal_counts``."""

    day = models.DateField()
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, related_name="+")
    source_type = models.CharField(max_length=20)  # a SourceType, or "other" for a caller's own label
    kind = models.CharField(
        max_length=KIND_LENGTH
    )  # the kind of credential, or an error code such as "forgotten" or "invalid"
    number = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-day", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "day", "source_type", "kind"], name="one_refusal_a_day_and_kind"
            )
        ]
        indexes = [models.Index(fields=["-day", "-id"], name="refusal_days")]

    def __str__(self) -> str:
        return f"{self.number:,} {self.kind} on {self.day}"
