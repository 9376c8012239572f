"""What a person was given for a group of the identity provider. Written by ``workspaces.accounts.groups``."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.people import User, Workspace


class GroupGrant(models.Model):
    """So that it is taken away with the group, and what people gave never is. Without a workspace: being staff."""

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
