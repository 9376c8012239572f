"""Receipts of turns, which record the recalled memories with scores, both used and left out."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.models.memory import Memory
from workspaces.models import User, Workspace

REASONS = {
    "meaning": gettext_lazy("close in meaning to what you wrote"),
    "words": gettext_lazy("the same words, here or where it was said"),
    "date": gettext_lazy("the date you asked for"),
    "time": gettext_lazy("says when"),
    "number": gettext_lazy("says how many"),
    "person": gettext_lazy("about the same person"),
    "recency": gettext_lazy("new"),
    "importance": gettext_lazy("important"),
}
LIKENESS = ("meaning", "words")
TELLING = 0.045  # minimum part of a score that is shown as a reason


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
    imported = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Of a file that somebody imported: nothing was recalled here.",
    )

    def __str__(self) -> str:
        return f"Receipt of {self.message_id}"


class Strength(models.TextChoices):
    """The relevance of a memory as judged by recall."""

    STRONG = "strong", gettext_lazy("Strong")
    RELATED = "related", gettext_lazy("Related")


class ReceiptItem(models.Model):
    """A recalled memory with its text at that time. ``reason`` says why it was left out, and is empty if it was
    used.
    """

    receipt = models.ForeignKey(Receipt, on_delete=models.CASCADE, related_name="items")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="receipt_items")
    position = models.PositiveSmallIntegerField()
    score = models.FloatField()
    score_parts = models.JSONField(default=dict)
    strength = models.CharField(
        max_length=10,
        choices=Strength.choices,
        blank=True,
        default="",
        help_text="Empty: it was not wanted, or the embedder does not tell.",
    )
    content = models.TextField()
    mentions: models.JSONField[Any, Any] = models.JSONField(
        default=list, db_default=[], help_text="Of the content, from and to: what was asked about, too."
    )
    used = models.BooleanField()
    reason = models.CharField(max_length=100, blank=True)
    in_profile = models.BooleanField(
        default=False, db_default=False, help_text="Used as a line of the profile, whatever the question was."
    )
    not_relevant = models.BooleanField(
        default=False, help_text="A person said it had nothing to do with the question."
    )

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["receipt", "memory"], name="once_in_a_receipt")]

    def __str__(self) -> str:
        return f"{self.position}. {self.memory_id} ({self.score:.2f})"

    @property
    def reasons(self) -> list[str]:
        """Return why the memory was found, in the reader's language.

        First come the words of the question that it mentions, if any, then up to two of the largest parts of its score.
        Similarity is not named beside mentioned words, which explain more.
        """
        said = self._mentions()
        parts = sorted(self.score_parts.items(), key=lambda part: -part[1])[:2]
        told = [name for name, value in parts if value >= TELLING and not (said and name in LIKENESS)]
        return [*said, *(str(REASONS.get(name, name)) for name in told)]

    def _mentions(self) -> list[str]:
        # Mentions are stored as positions in the content, so they vanish with it when it is forgotten.
        phrases = [phrase for begin, end in self.mentions if (phrase := self.content[begin:end])]
        if len(phrases) > 1:
            return [_("mentions “%(one)s” and “%(other)s”") % {"one": phrases[0], "other": phrases[1]}]
        return [_("mentions “%(phrase)s”") % {"phrase": phrase} for phrase in phrases]
