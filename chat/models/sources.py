"""What of the workspace's documents an answer was given to draw on: the numbers that it cites by."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils.translation import gettext as _

from workspaces.models import Document, DocumentPassage


class AnswerSource(models.Model):
    """A passage and where it stood; its text is in the document alone, and goes with it.

    It is named without a constraint: with a document a hundred thousand passages may go at once, and one that is gone
    leaves its answer the document.
    """

    message = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="sources")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveSmallIntegerField(help_text="By which the answer cites it, from 1.")
    passage = models.ForeignKey(
        DocumentPassage,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    page = models.PositiveIntegerField(default=0, help_text="0 where the document has none.")
    heading = models.CharField(max_length=300, blank=True, default="")
    score = models.FloatField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["message", "number"], name="one_source_a_number")]

    def __str__(self) -> str:
        return f"[{self.number}] {self.document_id}:{self.passage_id}"

    def get_absolute_url(self) -> str:
        """Of the document's page, open at the passage. Wants the document's workspace and the passage."""
        ids = [self.document.workspace.public_id, self.document.public_id]
        page, at = reverse("workspaces:document", args=ids), self.passage_number
        return page if at is None else f"{page}?passage={at}#passage-{at}"

    @property
    def passage_number(self) -> int | None:
        """Where it stands in the document as it is now; None where what it said was taken out."""
        return self.passage.number if self.passage else None

    @property
    def label(self) -> str:
        """Where it stands, for people."""
        page = _("page %(number)s") % {"number": self.page} if self.page else ""
        return ", ".join(filter(None, (self.document.title, page, self.heading)))
