"""Programs that signed in by OAuth. What a person lets one do is an ``ApiKey``; here is how the program opens it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memoryhub.ids import PublicIdField
from workspaces.models.api_key import ApiKey, KeyScope
from workspaces.models.people import User, Workspace


class OAuthClient(models.Model):
    """A program that registered itself (RFC 7591). Anybody may: what it says of itself is its word alone.

    It has no secret. Each sign-in proves that its requests are its own (PKCE).
    """

    public_id = PublicIdField(prefix="app")
    name = models.CharField(max_length=60)
    redirect_uris = models.JSONField(default=list)  # where its people are sent back to
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name = "program"

    def __str__(self) -> str:
        return self.name


class OAuthCode(models.Model):
    """Consent of a person, until the program fetches it, which it may once. ``key``: the key that it got."""

    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="codes")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.CASCADE, related_name="+")
    code_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=5, choices=KeyScope.choices)
    challenge = models.CharField(max_length=128)
    redirect_uri = models.TextField()
    names_redirect = models.BooleanField(default=True)  # then it must be named again
    resource = models.CharField(max_length=20)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = "sign-in of a program"
        verbose_name_plural = "sign-ins of programs"

    def __str__(self) -> str:
        return f"{self.client} for {self.user}"


class TokenKind(models.TextChoices):
    ACCESS = "access", "Access"
    REFRESH = "refresh", "Refresh"


class OAuthToken(models.Model):
    """Opens a key for some time: an access token its endpoints, a refresh token new tokens, once.

    ``resource`` is the path below which it opens endpoints.
    """

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=7, choices=TokenKind.choices)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=5, choices=KeyScope.choices)
    resource = models.CharField(max_length=20)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "token of a program"
        verbose_name_plural = "tokens of programs"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(kind="refresh") | models.Q(used_at=None), name="only_refresh_is_used_up"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.key}"
