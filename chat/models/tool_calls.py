"""Tool calls that the model made while it wrote an answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from chat.models.chats import Message
from memories.models import Memory
from memoryhub.ids import PublicIdField


class ToolStatus(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class ToolOutcome(models.TextChoices):
    """Outcomes of a tool call. REFUSED, DENIED, TIMEOUT and ERROR count as failures."""

    SAVED = "saved", "Saved"
    DUPLICATE = "duplicate", "Known already"
    FOUND = "found", "Found"
    NOTED = "noted", "Noted"
    REFUSED = "refused", "Not stored"
    DENIED = "denied", "Not allowed"
    TIMEOUT = "timeout", "Took too long"
    ERROR = "error", "Did not work"


class ToolCall(models.Model):
    """A tool call made for an answer. It has only ids of memories, so that forgotten text does not remain here."""

    # Set by ``chat.answer_steps`` for the reader: ids of visible memories, and those that are not forgotten.
    known: Collection[str]
    memories: Sequence[Memory]
    public_id = PublicIdField(prefix="call")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="tool_calls")
    name = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=ToolStatus.choices, default=ToolStatus.RUNNING)
    outcome = models.CharField(max_length=10, choices=ToolOutcome.choices, blank=True)
    count = models.PositiveSmallIntegerField(default=0, help_text="How much was found.")
    memory_ids = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    held_personal = models.BooleanField(
        default=False,
        editable=False,
        help_text="It held something of its person's own: no link shows its answer.",
    )
    shown: models.JSONField[Any, Any] = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What it quoted of documents, artifacts and messages: whose, id, from, to. Never their text.",
    )
    output = models.TextField(blank=True, help_text="What may be mined for memories; most calls have none.")
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.name} {self.public_id}: {self.status}"
