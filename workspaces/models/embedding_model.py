"""Embedding models: the one whose vectors recall compares, and the one that is built to replace it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q


class ModelState(models.TextChoices):
    ACTIVE = "active", "Compared by recall"
    BUILDING = "building", "Being built"
    RETIRED = "retired", "No longer used"


class EmbeddingModelQuerySet(models.QuerySet["EmbeddingModel"]):
    def active(self) -> EmbeddingModel | None:
        """The one whose vectors recall compares; None until the first text was embedded."""
        return self.filter(state=ModelState.ACTIVE).first()

    def building(self) -> EmbeddingModel | None:
        return self.filter(state=ModelState.BUILDING).first()

    def to_clean(self, retired_before: datetime) -> EmbeddingModelQuerySet:
        """Retired since before then, and some of its vectors may still lie here."""
        return self.filter(state=ModelState.RETIRED, cleaned_at=None, retired_at__lt=retired_before)


class EmbeddingModel(models.Model):
    """Embedding model with its state. Written by ``workspaces.index.embedding`` (the first) and
    ``workspaces.index.reembedding``.

    ``label`` is what stands beside its vectors: the model's name, with a number where one name came to mean other
    vectors (an endpoint that changed its answers' size). Vectors of two labels are never compared.
    """

    label = models.CharField(max_length=200, unique=True)
    name = models.CharField(max_length=200, help_text="What its endpoint calls it.")
    base_url = models.CharField(max_length=500, blank=True, help_text="Empty: in this process.")
    dimension = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=ModelState.choices)
    started_at = models.DateTimeField()
    activated_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    cleaned_at = models.DateTimeField(null=True, blank=True, help_text="When the last of its vectors went.")
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="Somebody stopped the building.")

    # How far the building is. The vectors tell what is missing; these only show it and save looking from the start.
    total_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    rate = models.FloatField(null=True, blank=True, help_text="Passages a second, lately.")
    progressed_at = models.DateTimeField(null=True, blank=True)
    # By the number of a kind of passages, as JSON has it: the key up to which they have been looked at; and the keys of
    # those whose text this model does not take, which do not hold up the switch.
    reached: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    refused: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    error = models.CharField(max_length=300, blank=True)

    objects = EmbeddingModelQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], name="one_active_one_building", condition=~Q(state="retired")
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def progress(self) -> str:
        """ "3,200 of 10,000 (32 %), 190 a second, about 36 s left"; empty unless it is being built."""
        if self.state != ModelState.BUILDING:
            return ""
        total = max(self.total_count, self.done_count)
        share = f" ({100 * self.done_count // total} %)" if total else ""
        text = f"{self.done_count:,} of {total:,}{share}"
        if self.stopped_at:
            return f"{text}, stopped"
        if self.rate:
            seconds = (total - self.done_count) / self.rate
            left = f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
            text += f", {self.rate:,.0f} a second, about {left} left"
        return f"{text}. {self.error}" if self.error else text
