"""People, the workspaces they share, and what each may do there."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models

from memoryhub.ids import PublicIdField


class User(AbstractUser):
    """A person. Django's user with a public id, so that no database key leaves the house."""

    public_id = PublicIdField(prefix="usr")
    memory_default = models.BooleanField(
        "memory on by default",
        null=True,
        blank=True,
        help_text="Automatic memory in this person's chats. Empty: not asked yet.",
    )

    class Meta(AbstractUser.Meta):
        pass


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    EDITOR = "editor", "Editor"
    VIEWER = "viewer", "Viewer"

    @property
    def rank(self) -> int:
        return {Role.VIEWER: 1, Role.EDITOR: 2, Role.OWNER: 3}[self]

    def allows(self, need: Role) -> bool:
        return self.rank >= need.rank


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def visible_to(self, user: User) -> WorkspaceQuerySet:
        """The workspaces this person is a member of, each with their ``role``."""
        return self.filter(memberships__user=user).annotate(role=models.F("memberships__role"))


class Workspace(models.Model):
    """The tenant boundary: everything that is remembered belongs to one."""

    public_id = PublicIdField(prefix="ws")
    name = models.CharField(max_length=120)
    description = models.TextField(max_length=2000, blank=True)
    default_of = models.OneToOneField(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="default_workspace",
        help_text="The person whose default workspace this is, if it is one.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_default(self) -> bool:
        return self.default_of_id is not None


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_a_person")]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}: {self.role}"
