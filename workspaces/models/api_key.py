"""Keys of programs."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.people import User, Workspace


class KeyScope(models.TextChoices):
    READ = "read", later("Read")
    WRITE = "write", later("Read and write")


class ApiKey(models.Model):
    """Lets a program act as the person who made it, in one workspace. Made and checked by ``workspaces.accounts.keys``.

    The key itself is not here, only its hash: nobody can read it again.
    """

    public_id = PublicIdField(prefix="key")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    # The program that signed in for it, by which alone it is opened (workspaces.oauth); None: opened by its text.
    client = models.ForeignKey(
        "workspaces.OAuthClient", null=True, blank=True, on_delete=models.PROTECT, related_name="keys"
    )
    name = models.CharField(max_length=80)
    scope = models.CharField(max_length=5, choices=KeyScope.choices, default=KeyScope.READ)
    key_hash = models.CharField(max_length=64, unique=True, editable=False)  # SHA-256, hexadecimal
    beginning = models.CharField(max_length=12, editable=False)  # by which its maker tells it from others
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    calls = models.PositiveBigIntegerField(default=0, editable=False, help_text="Requests that passed.")
    # The minute that is being counted, and the requests in it: in the database, so that all web processes share it.
    counted_at = models.DateTimeField(null=True, editable=False)
    counted = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=models.Q(revoked_at=None),
                name="one_live_key_of_a_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.beginning}…)"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now
