"""Saved prompts of people and workspaces. Written by ``chat.chats.saved_prompts``."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace


class SavedPromptQuerySet(models.QuerySet["SavedPrompt"]):
    def visible_to(self, user: User, workspace: Workspace) -> SavedPromptQuerySet:
        """Filter to the prompts that this person may use in ``workspace``: their own and the workspace's."""
        return self.filter(Q(owner=user) | Q(workspace=workspace))


class SavedPrompt(models.Model):
    """A prompt that belongs either to a user, in all their workspaces, or to a workspace."""

    public_id = PublicIdField(prefix="prm")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="saved_prompts")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, related_name="saved_prompts"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=80)
    text = models.TextField(max_length=8000)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = SavedPromptQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="one_own_prompt_a_name"),
            models.UniqueConstraint(fields=["workspace", "name"], name="one_shared_prompt_a_name"),
            models.CheckConstraint(
                condition=Q(owner=None, workspace__isnull=False) | Q(owner__isnull=False, workspace=None),
                name="prompt_of_one",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_personal(self) -> bool:
        return self.owner_id is not None
