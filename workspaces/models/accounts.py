"""Models of API keys, OAuth programs, invitations, directory groups and unsent mail."""

from datetime import datetime
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.people import Role, User, Workspace


class KeyScope(models.TextChoices):
    READ = "read", later("Read")
    WRITE = "write", later("Read and write")


class ApiKey(models.Model):
    """A key with which a program acts as the key's creator in one workspace. Written by ``workspaces.accounts.keys``.

    Only a hash of the secret is stored, so it cannot be shown again.
    """

    public_id = PublicIdField(prefix="key")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    # The OAuth program that this key was made for, which uses it by tokens (accounts.oauth). None: the text is used.
    client = models.ForeignKey(
        "workspaces.OAuthClient", null=True, blank=True, on_delete=models.PROTECT, related_name="keys"
    )
    name = models.CharField(max_length=80)
    scope = models.CharField(max_length=5, choices=KeyScope.choices, default=KeyScope.READ)
    key_hash = models.CharField(max_length=64, unique=True, editable=False)  # SHA-256, hexadecimal
    beginning = models.CharField(max_length=12, editable=False)  # shown so that its creator can recognize it
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    calls = models.PositiveBigIntegerField(default=0, editable=False, help_text="Requests that passed.")
    # The minute that is being counted, and the requests in it. Stored here because all web processes share the count.
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


# OAuth programs. What a person authorizes is stored as an ``ApiKey``; these models give the program access to it.


class OAuthClient(models.Model):
    """A program that registered itself (RFC 7591). Any program can register, so the name is not trustworthy.

    It has no secret; each authorization uses PKCE instead.
    """

    public_id = PublicIdField(prefix="app")
    name = models.CharField(max_length=60)
    redirect_uris = models.JSONField(default=list)  # allowed redirect URIs
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name = "program"

    def __str__(self) -> str:
        return self.name


class OAuthCode(models.Model):
    """An authorization code. It stores a person's consent and is exchanged for tokens once.

    ``key``: the API key that the exchange created.
    """

    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="codes")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.CASCADE, related_name="+")
    code_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=5, choices=KeyScope.choices)
    challenge = models.CharField(max_length=128)
    redirect_uri = models.TextField()
    names_redirect = models.BooleanField(default=True)  # the request named it, so the exchange must too
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
    """An access token or a refresh token. A refresh token is exchanged once for new tokens.

    A program with an access token may do what its API key allows, below the path ``resource``.
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


# Invitations to a workspace. Only ``workspaces.accounts.invitations`` writes them.


class Invitation(models.Model):
    """An offer of membership to one person (``user``), or to everyone who has its link.

    The link is not stored: it holds the signed ``public_id`` (``invitations.link_token``). ``used_by``: people who used
    the invitation, and members whom an owner has since removed or given a lesser role. They cannot use it again.
    """

    public_id = PublicIdField(prefix="inv")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    most = models.PositiveSmallIntegerField(default=1, help_text="How many people it lets in.")
    used = models.PositiveSmallIntegerField(default=0, help_text="How many have come.")
    used_by = ArrayField(
        models.BigIntegerField(), default=list, blank=True, help_text="Their keys: each comes once."
    )
    user = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The person it is for. Empty: everyone who has its link.",
    )
    email = models.EmailField(blank=True, default="", help_text="Where it was sent, if it was.")
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    declined_at = models.DateTimeField(null=True, blank=True)  # by the person it is for

    class Meta:
        ordering = ["-created_at", "-id"]

    status = "invited"  # in the list of members
    joined_at = None

    def __str__(self) -> str:
        return f"{self.role} of {self.workspace}, {self.used} of {self.most} used"


# Groups of the directory, and the rights granted for them. Written by ``workspaces.accounts.provisioning`` and
# ``workspaces.accounts.single_sign_on``.


class DirectoryGroup(models.Model):
    """A group of the company's directory. The settings map group names to rights."""

    public_id = PublicIdField(prefix="grp")
    name = models.CharField(max_length=256, unique=True)
    external_id = models.CharField(max_length=256, blank=True, help_text="The directory's own id of it.")
    members = models.ManyToManyField(User, related_name="+")

    def __str__(self) -> str:
        return f"Group {self.pk}"


class GroupGrant(models.Model):
    """A right that a person has through a group: a role in a workspace, or staff rights if ``workspace`` is None.

    When the person leaves the group, this right is revoked. Rights that were granted by hand have no such row and stay.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, related_name="+")
    role = models.CharField(max_length=10, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "workspace"], name="one_grant_a_place"),
            models.UniqueConstraint(fields=["user"], condition=Q(workspace=None), name="one_grant_of_staff"),
        ]

    def __str__(self) -> str:
        return f"Grant {self.pk}"


# Mail that could not be sent yet. Written by ``workspaces.accounts.unsent_mail``.


class WaitingMail(models.Model):
    """A complete mail that waits for a retry. It is encrypted because it may contain a password reset link."""

    sealed = models.TextField()
    attempts = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"Mail {self.pk}"
