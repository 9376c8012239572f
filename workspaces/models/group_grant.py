"""Groups of the directory, and what a person was given for a group. Written by ``workspaces.scim.groups`` and
``workspaces.accounts.groups``.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memoryhub.ids import PublicIdField
from workspaces.models.people import User, Workspace


class DirectoryGroup(models.Model):
    """As the company's directory says it. What it gives stands in the settings, by its name."""

    public_id = PublicIdField(prefix="grp")
    name = models.CharField(max_length=256, unique=True)
    external_id = models.CharField(max_length=256, blank=True, help_text="The directory's own id of it.")
    members = models.ManyToManyField(User, related_name="+")

    def __str__(self) -> str:
        return f"Group {self.pk}"


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
