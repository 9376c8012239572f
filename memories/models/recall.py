"""Receipts, which record the memories recalled for an answer, and test questions for recall."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.models.memory import Memory
from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace

QUESTION_LENGTH = 500


class RecallQuestionQuerySet(models.QuerySet["RecallQuestion"]):
    def visible_to(self, user: User) -> RecallQuestionQuerySet:
        """Filter to the questions of this person's workspaces, without the personal questions of others."""
        return self.filter(workspace__memberships__user=user).filter(Q(owner=None) | Q(owner=user))


class RecallQuestion(models.Model):
    """A test question for recall, with its last result.

    A question with an ``owner`` is visible only to them, because one of its expected memories is personal. ``ran_with``
    is the value of ``recall_test.state_of`` at the last run.
    """

    public_id = PublicIdField(prefix="ask")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="recall_questions")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    text = models.CharField(max_length=QUESTION_LENGTH)
    memories = models.ManyToManyField(Memory, through="ExpectedMemory", related_name="expected_by")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ran_at = models.DateTimeField(null=True, blank=True)
    ran_with = models.CharField(max_length=200, blank=True, default="")
    degraded = models.CharField(max_length=200, blank=True, default="")
    used_count = models.PositiveSmallIntegerField(
        default=0, help_text="How many memories an answer would be given, expected or not."
    )

    objects = RecallQuestionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.text


class ExpectedMemory(models.Model):
    """A memory that recall should find for a test question, with its rank at the last run."""

    question = models.ForeignKey(
        RecallQuestion, on_delete=models.CASCADE, db_index=False, related_name="expected"
    )
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="+")
    rank = models.PositiveSmallIntegerField(null=True, blank=True)
    used = models.BooleanField(default=False)
    reason = models.CharField(max_length=100, blank=True, default="")

    class Meta:
        verbose_name_plural = "expected memories"
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["question", "memory"], name="expected_once")]

    def __str__(self) -> str:
        return f"memory {self.memory_id} for question {self.question_id}"


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

    @property
    def shown(self) -> list[ReceiptItem]:
        """Return the items whose memory was not forgotten since. Load the receipt by ``recall.receipts_for``."""
        return [item for item in self.items.all() if not item.is_forgotten]

    @property
    def forgotten(self) -> int:
        """Return how many memories used for the answer, other than of the profile, were forgotten since."""
        return sum(item.is_forgotten and item.used and not item.in_profile for item in self.items.all())


class Strength(models.TextChoices):
    """The degree to which a recalled memory matches the question."""

    STRONG = "strong", gettext_lazy("Strong")
    RELATED = "related", gettext_lazy("Related")


class ReceiptItem(models.Model):
    """A recalled memory, with its text at the time of the answer. If it was not used, ``reason`` says why."""

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
    def is_forgotten(self) -> bool:
        """Return whether the memory was deleted since the answer, and not merged into an existing one."""
        return not getattr(self, "stands", self.memory.deleted_at is None)

    @property
    def reasons(self) -> list[str]:
        """Return why the memory was found, in the reader's language.

        Words of the question that it mentions come first, then at most two signals that add most to the score.
        Similarity is left out if words were named.
        """
        mentions = self._mentions()
        parts = sorted(self.score_parts.items(), key=lambda part: -part[1])[:2]
        told = [name for name, value in parts if value >= TELLING and not (mentions and name in LIKENESS)]
        return [*mentions, *(str(REASONS.get(name, name)) for name in told)]

    def _mentions(self) -> list[str]:
        # Mentions are stored as positions in the content, so they vanish with it when it is forgotten.
        phrases = [phrase for begin, end in self.mentions if (phrase := self.content[begin:end])]
        if len(phrases) > 1:
            return [_("mentions “%(one)s” and “%(other)s”") % {"one": phrases[0], "other": phrases[1]}]
        return [_("mentions “%(phrase)s”") % {"phrase": phrase} for phrase in phrases]
