"""Models of workspaces, their members, assistants and retention rules, invitations, and directory groups."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.users import User


class Role(models.TextChoices):
    OWNER = "owner", later("Owner")
    EDITOR = "editor", later("Editor")
    VIEWER = "viewer", later("Viewer")

    @property
    def rank(self) -> int:
        return {Role.VIEWER: 1, Role.EDITOR: 2, Role.OWNER: 3}[self]

    def allows(self, need: Role) -> bool:
        return self.rank >= need.rank


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def visible_to(self, user: User) -> WorkspaceQuerySet:
        """Return the workspaces of which this person is a member, annotated with their ``role``."""
        role = models.F("memberships__role")
        return self.filter(memberships__user=user).annotate(role=role)  # type: ignore[no-redef]  # the model declares it


class Workspace(models.Model):
    """The tenant boundary: chats, memories and documents each belong to one workspace."""

    role: str  # the reader's, where ``visible_to`` has annotated it
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
    made_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who is charged for it. Nobody, if it is somebody's default one.",
    )
    private_short_term = models.BooleanField(
        "private chats in short-term memory",
        default=False,
        help_text="A person's private chats here are told of, in short, in that person's other chats.",
    )
    reviews_proposals = models.BooleanField(
        default=False, help_text="What viewers or models propose waits for an editor."
    )
    connection = models.ForeignKey(
        "Connection",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="workspaces",
        help_text="Which model answers here, where a chat has not chosen another. Empty: the configured one.",
    )
    share_links = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Chats here may be read by a link, by whoever has it, without signing in.",
    )
    local_only = models.BooleanField(
        "memories never leave this machine",
        default=False,
        help_text="Only models and embedders that are marked local are asked about what is said and stored here.",
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

    status = "member"  # in the list of members

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}: {self.role}"

    @property
    def joined_at(self) -> datetime:
        return self.created_at


class AgentQuerySet(models.QuerySet["Agent"]):
    def in_use(self) -> AgentQuerySet:
        """Return the assistants that are not archived."""
        return self.filter(archived_at=None)

    def visible_to(self, user: User) -> AgentQuerySet:
        """Return the assistants of this person's workspaces, annotated with the person's ``role`` there."""
        role = models.F("workspace__memberships__role")
        return self.filter(workspace__memberships__user=user).annotate(role=role)  # type: ignore[no-redef]  # the model declares it


class Agent(models.Model):
    """An assistant of a workspace. Its instructions are part of the prompt in every chat with it.

    It is archived instead of deleted, so that its chats and memories stay.
    """

    role: str  # the reader's, where ``visible_to`` has annotated it
    public_id = PublicIdField(prefix="agent")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    instructions = models.TextField(max_length=4000, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    imported = models.BooleanField(
        default=False, db_default=False, help_text="Somebody else imported it under its author's name."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                "workspace",
                Lower("name"),
                condition=models.Q(archived_at=None),
                name="one_agent_of_a_name",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None


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


# Retention rules of a workspace. Written by ``workspaces.retention``.


def _days(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(null=True, blank=True, help_text=f"Days that {what}. Empty: for good.")


class Retention(models.Model):
    """Retention rules of a workspace. Without a row nothing is deleted because of its age."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="retention")
    set_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The owner who set it: of personal memories it concerns theirs alone.",
    )
    chats = _days("a chat is kept after its last message")
    memories = _days("a memory is kept that nobody changed and no answer used")
    documents = _days("a document is kept after its last change")
    artifacts = _days("an artifact is kept after its last change")
    activity = _days("an entry of the activity is kept")
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"Retention {self.pk}"
