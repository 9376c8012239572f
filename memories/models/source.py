"""Where a memory comes from, as its callers say. Written by ``memories.writing.sources``."""

from __future__ import annotations

from django.db import models

from memories.models.memory import Memory


class MemorySource(models.Model):
    """The public id of a chat or message. No foreign key: it outlives the chat, and memories know nothing of chats."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="sources")
    source_id = models.CharField(max_length=32)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["source_id"], name="memory_of_source")]
        constraints = [models.UniqueConstraint(fields=["memory", "source_id"], name="one_source_once")]

    def __str__(self) -> str:
        return self.source_id
