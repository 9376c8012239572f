"""Test questions of a workspace, with the memories that recall should find. Written by ``recalling.recall_test``."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

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

    ``owner``: the only person who may see it, because one of its memories is personal. ``ran_with``: the state of the
    workspace on which it last ran.
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
    """A memory that a question should find.

    ``rank`` is its last rank, None if it was not found. ``reason`` says why it was not used.
    """

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
