"""Extractions, one row per finished turn, and counts of refused memories."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.db.models import Q

from workspaces.models import User, Workspace


class ExtractionStatus(models.TextChoices):
    PENDING = "pending", "Waiting"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class ExtractionQuerySet(models.QuerySet["Extraction"]):
    def due(self, now: datetime) -> ExtractionQuerySet:
        return self.filter(status=ExtractionStatus.PENDING, next_attempt_at__lte=now)

    def troubled(self, user: User, message_ids: Iterable[str]) -> ExtractionQuerySet:
        """Filter to this person's extractions from these messages whose last attempt failed."""
        mine = self.filter(user=user, message_id__in=message_ids)
        return mine.exclude(error="").exclude(status=ExtractionStatus.DONE)


class Extraction(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="extractions")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    chat_id = models.CharField(max_length=32)
    message_id = models.CharField(max_length=32, help_text="The answer that ended the turn.")
    source_type = models.CharField(max_length=50)
    extractor = models.CharField(max_length=20, blank=True)
    status = models.CharField(
        max_length=10, choices=ExtractionStatus.choices, default=ExtractionStatus.PENDING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)
    stored_count = models.PositiveSmallIntegerField(default=0)
    duplicate_count = models.PositiveSmallIntegerField(default=0)
    refused_count = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ExtractionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["message_id", "source_type"], name="one_extraction_a_turn")
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="extraction_due", condition=Q(status="pending")),
            models.Index(fields=["-id"], name="extraction_failed", condition=Q(status="failed")),
        ]

    def __str__(self) -> str:
        return f"{self.source_type} of {self.message_id}: {self.status}"


KIND_LENGTH = 40


class Refusal(models.Model):
    """The number of memories refused on a day, per workspace, source and reason."""

    day = models.DateField()
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, related_name="+")
    source_type = models.CharField(max_length=20)  # a SourceType, or "other" for a caller's own label
    # The kind of credential, or an error code such as "forgotten" or "invalid".
    kind = models.CharField(max_length=KIND_LENGTH)
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
