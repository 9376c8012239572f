"""Retention rules of a workspace. Written by ``workspaces.retention.rules``."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from workspaces.models.people import User, Workspace


def _days(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(null=True, blank=True, help_text=f"Days that {what}. Empty: for good.")


class Retention(models.Model):
    """Rule of a workspace. Without a row, things are kept for good."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="retention")
    set_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The owner who set it: of personal memories it concerns theirs alone.",
    )
    chats = _days("a chat is kept after its last message")
    memories = _days("a memory is kept that nobody changed and no answer used")
    documents = _days("a document is kept after its last change")
    artifacts = _days("an artifact is kept after its last change")
    activity = _days("an entry of the activity is kept")
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"Retention {self.pk}"
