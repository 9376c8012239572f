"""The words of live memories, a small row each: what BM25 is summed from (docs/decisions/0008)."""

from __future__ import annotations

from django.db import models


class MemoryWord(models.Model):
    """How much one lexeme weighs in one memory. Made and removed by ``memories.recalling.words`` alone.

    Plain keys, no foreign keys: rows of a memory that is deleted outright are removed by a trigger (migration 0002).
    """

    pk = models.CompositePrimaryKey("place", "lexeme", "memory_id")
    place = models.BigIntegerField()
    lexeme = models.TextField()
    memory_id = models.BigIntegerField()
    weight = models.FloatField()

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.memory_id}"
