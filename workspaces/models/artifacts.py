"""Artifacts and their versions, saved from answers or written by people. Only ``workspaces.artifacts`` writes them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.documents import OWNER_HELP, Owned, OwnedQuerySet
from workspaces.models.people import User, Workspace

ARTIFACT = 3  # number of the index kind for artifacts (workspaces.artifacts)
TITLE_LENGTH = 200
LANGUAGE_LENGTH = 40
CONTENT_LENGTH = 200_000


class ArtifactKind(models.TextChoices):
    MARKDOWN = "markdown", later("Text")
    CODE = "code", later("Code")
    HTML = "html", later("Web page")
    TABLE = "table", later("Table")


class Artifact(Owned, models.Model):
    role: str  # the user's role in the workspace, set by ``visible_to``

    public_id = PublicIdField(prefix="art")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="artifacts")
    owner = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=OWNER_HELP,
    )
    title = models.CharField(max_length=TITLE_LENGTH)
    kind = models.CharField(max_length=10, choices=ArtifactKind.choices)
    language = models.CharField(max_length=LANGUAGE_LENGTH, blank=True, default="", help_text="Of code.")
    content = models.TextField(help_text="Of its newest version; a table as Markdown.")
    gist = models.TextField(help_text="What its vector is made of: its title and how it begins.")
    version = models.PositiveIntegerField(default=1, help_text="The number of its newest version.")
    source_chat_id = models.CharField(max_length=40, blank=True, default="")
    source_message_id = models.CharField(max_length=40, blank=True, default="")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    imported = models.BooleanField(
        default=False, db_default=False, help_text="Somebody else imported it under its author's name."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = OwnedQuerySet["Artifact"].as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["workspace", "-created_at", "-id"], name="artifact_list", condition=Q(deleted_at=None)
            ),
            models.Index(
                fields=["deleted_at"], name="artifact_deleted", condition=Q(deleted_at__isnull=False)
            ),  # for the purge
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id}"  # not the title: only the artifact's readers may see it

    @property
    def is_code(self) -> bool:
        return self.kind == ArtifactKind.CODE


class ArtifactVersion(models.Model):
    """The state of an artifact after one change. The current state is one of the versions."""

    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="From 1.")
    title = models.CharField(max_length=TITLE_LENGTH)
    language = models.CharField(max_length=LANGUAGE_LENGTH, blank=True, default="")
    content = models.TextField()
    size = models.PositiveIntegerField(help_text="Bytes of the content.")
    by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    by_model = models.BooleanField(default=False, help_text="A model wrote it, for that person.")
    imported = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Somebody else imported it under that name, or as a model's.",
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["artifact", "number"], name="one_artifact_version_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.artifact_id}, version {self.number}"
