"""What of the workspace's documents an answer was given to draw on: the numbers that it cites by."""

from __future__ import annotations

from django.db import models

from workspaces.models import Document


class AnswerSource(models.Model):
    """A passage by its place; its text stays in the document alone, and goes with it."""

    message = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="sources")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveSmallIntegerField(help_text="By which the answer cites it, from 1.")
    passage = models.PositiveIntegerField(help_text="Its number in the document, from 0.")
    page = models.PositiveIntegerField(default=0, help_text="0 where the document has none.")
    heading = models.CharField(max_length=300, blank=True, default="")
    score = models.FloatField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["message", "number"], name="one_source_a_number")]

    def __str__(self) -> str:
        return f"[{self.number}] {self.document_id}:{self.passage}"
