"""What a turn recalled, with scores, what it used and what it left out."""

from __future__ import annotations

from django.db import models

from memories.models.memory import Memory
from workspaces.models import User, Workspace


class Receipt(models.Model):
    message_id = models.CharField(max_length=32, unique=True, help_text="The answer it belongs to.")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    ranking = models.CharField(max_length=20)
    threshold = models.FloatField()
    degraded = models.CharField(
        max_length=200, blank=True, help_text="Why recall fell back to words, if it did."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Receipt of {self.message_id}"


class ReceiptItem(models.Model):
    """One recalled memory as it read at that moment. ``reason`` says why it was left out; empty: it was used."""

    receipt = models.ForeignKey(Receipt, on_delete=models.CASCADE, related_name="items")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="receipt_items")
    position = models.PositiveSmallIntegerField()
    score = models.FloatField()
    score_parts = models.JSONField(default=dict)
    content = models.TextField()
    used = models.BooleanField()
    reason = models.CharField(max_length=100, blank=True)
    not_relevant = models.BooleanField(
        default=False, help_text="A person said it had nothing to do with the question."
    )

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["receipt", "memory"], name="once_in_a_receipt")]

    def __str__(self) -> str:
        return f"{self.position}. {self.memory_id} ({self.score:.2f})"
