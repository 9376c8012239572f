"""What a person does with a chat in their own list; nobody else's list changes."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower

from chat.models.chats import Chat
from workspaces.models import User


class ChatMark(models.Model):
    """Pinned above the others, or archived: out of the list, still found by a search. Without a row: neither."""

    class Kind(models.TextChoices):
        PINNED = "pinned", "Pinned"
        ARCHIVED = "archived", "Archived"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="marks")
    kind = models.CharField(max_length=8, choices=Kind.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "chat"], name="one_mark_a_person_and_chat")]
        indexes = [models.Index(fields=["user", "kind"], name="chat_marks")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} by {self.user}"


TAG_LENGTH = 40


class ChatTag(models.Model):
    """A word under which a reader finds a chat again."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=TAG_LENGTH)

    class Meta:
        ordering = [Lower("name")]
        constraints = [models.UniqueConstraint("user", "chat", Lower("name"), name="one_tag_of_a_name")]
        indexes = [models.Index("user", Lower("name"), name="chat_tags")]

    def __str__(self) -> str:
        return self.name
