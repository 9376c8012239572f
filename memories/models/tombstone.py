"""What was forgotten for good, without a word of it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Tombstone(models.Model):
    """A keyed hash of a text that nothing may remember again by itself. Written by ``writing.tombstones`` alone."""

    place = models.BigIntegerField(help_text="Where the memory was looked for; see Memory.place.")
    digest = models.CharField(max_length=64)  # HMAC-SHA256, hexadecimal
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["place", "digest"], name="one_tombstone_a_text")]

    def __str__(self) -> str:
        return f"something in place {self.place}"
