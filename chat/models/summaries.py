"""What stands for more than it says: a chat's summary for other turns, and the one in the place of older messages."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from chat.models.chats import Chat, Message
from memoryhub.ids import PublicIdField
from workspaces.models import User

SUMMARY_LENGTH = 1500


class ShortTermMemory(models.Model):
    """What a chat is about just now, for its own next turns and for other chats of those who may see it.

    It is there once a turn was taken with memory on, has a summary once the model or a person wrote one, and is
    over when it expires. Written by ``chat.prompting.short_term``.
    """

    chat = models.OneToOneField(Chat, on_delete=models.CASCADE, related_name="short_term")
    summary = models.TextField(blank=True, max_length=SUMMARY_LENGTH)
    summarised_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who wrote the summary. Empty: the model.",
    )
    summarised_in = models.CharField(
        max_length=40, blank=True, help_text="The answer, and which attempt, in which the model wrote it."
    )
    summarised_at = models.DateTimeField(null=True, blank=True)
    last_said: models.JSONField[Any, Any] = models.JSONField(
        default=list,
        blank=True,
        help_text="[role, text] of the last messages of turns with memory on, cut short.",
    )
    personal_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When the first personal answer that it tells of was written. Empty: it tells of none.",
    )
    stays_here = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether it tells of another workspace's text that never leaves this machine.",
    )
    touched_at = models.DateTimeField(help_text="The last turn with memory on, or change of the summary.")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "short-term memories"

    def __str__(self) -> str:
        return f"Short-term memory of chat {self.chat_id}"


class Compaction(models.Model):
    """A summary in the place of a chat's older messages, for a model that cannot be shown them all."""

    public_id = PublicIdField(prefix="sum")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="compactions")
    upto = models.ForeignKey(
        Message,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The last message that it summarises; it speaks for all before, too.",
    )
    summary = models.TextField()
    is_marked = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether an answer is in it that not every reader, or not every model, may be shown.",
    )
    model = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-upto_id", "-id"]

    def __str__(self) -> str:
        return f"Summary of chat {self.chat_id} up to message {self.upto_id}"
