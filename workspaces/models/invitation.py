"""Invitations into a workspace. Written by ``workspaces.invitations`` only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from memoryhub.ids import PublicIdField
from workspaces.models.people import Role, User, Workspace


class Invitation(models.Model):
    """An offer of membership: to one person (``user``), or to everyone who has its link.

    The link is not stored: it is this id, signed (``invitations.link_token``). One to a person has none.

    In ``used_by`` are also those whom an owner has removed since, or let do less: it is as used for them.
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
