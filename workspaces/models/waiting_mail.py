"""Mail that no server took yet. Written by ``workspaces.accounts.mailing``."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class WaitingMail(models.Model):
    """Whole, and sealed: it may hold a link that sets a password."""

    sealed = models.TextField()
    attempts = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"Mail {self.pk}"
