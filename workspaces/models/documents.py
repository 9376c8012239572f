"""Uploaded documents, the passages of their text, and artifacts with their versions.

An artifact is a text saved from an answer or written by a person. Only ``workspaces.documents`` writes documents, and
only ``workspaces.artifacts`` writes artifacts.
"""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.index import place_of
from workspaces.models.users import User
from workspaces.models.workspaces import Workspace

# Rows that belong to a workspace or to one person: documents, their passages, artifacts.

M = TypeVar("M", bound=models.Model, covariant=True)
OWNED_PLACE = "coalesce(-m.owner_id, m.workspace_id)"  # place_of(…, owner_id=…) in SQL
OWNED_HERE = "m.workspace_id = %(workspace)s::bigint AND m.owner_id IS NULL"  # Kind.here and Kind.own
OWNED_OWN = "m.owner_id = %(user)s::bigint AND -(%(user)s::bigint) = ANY(%(places)s::bigint[])"
OWNER_HELP = (
    "Who alone sees it, in every workspace. It lies in their own one. Empty: every member of the workspace."
)


class Owned:
    """Mixin for rows that are shared in a workspace or, if they have an owner, visible to that person only."""

    workspace_id: int
    owner_id: int | None

    @property
    def place(self) -> int:
        """Return the number of the index scope that the row belongs to (``place_of``). ``OWNED_PLACE`` is the same in
        SQL.
        """
        return place_of(self.workspace_id, owner_id=self.owner_id)

    @property
    def is_personal(self) -> bool:
        return self.owner_id is not None


class OwnedQuerySet(models.QuerySet[M]):
    def live(self) -> Self:
        return self.filter(deleted_at=None)

    def visible_to(self, user: User) -> Self:
        """Return the rows of this person's workspaces, except other people's personal rows.

        Annotates the person's ``role``.
        """
        mine = self.filter(Q(owner=None) | Q(owner=user), workspace__memberships__user=user)
        return mine.annotate(role=F("workspace__memberships__role"))


DOCUMENT = 2  # number of the index kind for passages (workspaces.documents.search)
TITLE_LENGTH = 200


class DocumentStatus(models.TextChoices):
    WAITING = "waiting", later("Waiting")
    READING = "reading", later("Being read")
    INDEXING = "indexing", later("Found by words")  # text is searchable; vectors are being made
    READY = "ready", later("Ready")
    FAILED = "failed", later("Could not be read")


READ = (DocumentStatus.INDEXING, DocumentStatus.READY)


class DocumentQuerySet(OwnedQuerySet["Document"]):
    def drafts(self) -> DocumentQuerySet:
        """Return files that were attached to a message which has not been sent yet."""
        return self.filter(drafted_at__isnull=False)

    def to_read(self) -> DocumentQuerySet:
        """Return the documents whose file may be read: live ones and drafts."""
        return self.filter(Q(deleted_at=None) | Q(drafted_at__isnull=False))

    def not_quite_read(self) -> DocumentQuerySet:
        """Return the live documents to read again.

        These have a reading error, or are images without a stored picture because they were read before pictures were
        stored.
        """
        undrawn = Q(status__in=READ, media_type__startswith="image/", picture=None)
        return self.live().filter(~Q(error="") | undrawn)

    def charged_to(self, user: User) -> DocumentQuerySet:
        """Return the documents whose size counts against this person's quota, because they added the newest file."""
        return self.filter(Q(version_by=user) | Q(version=1, created_by=user))


class Document(Owned, models.Model):
    role: str  # the user's role in the workspace, set by ``visible_to``
    by_meaning: float | None  # set by ``workspaces.documents.reading_jobs.with_shares``

    public_id = PublicIdField(prefix="doc")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="documents")
    owner = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+", help_text=OWNER_HELP
    )
    title = models.CharField(max_length=TITLE_LENGTH)
    file_name = models.CharField(max_length=40, unique=True, editable=False)  # random; memoryhub.stored_files
    media_type = models.CharField(max_length=100, help_text="From its first bytes and its name's ending.")
    size = models.BigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64, help_text="Of the content, hexadecimal.")
    version = models.PositiveIntegerField(default=1, help_text="Counts up with every newer file.")
    version_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who brought the newest file. Empty: who brought the document.",
    )
    version_at = models.DateTimeField(null=True, blank=True, help_text="And when.")
    status = models.CharField(max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.WAITING)
    error = models.CharField(max_length=300, blank=True, default="", help_text="Why it could not be read.")
    pages = models.PositiveIntegerField(default=0, help_text="0 where it has none.")
    characters = models.PositiveIntegerField(default=0)
    passage_count = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0, help_text="How long the last reading took.")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    reading_since = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="While it is read: the reader's last sign of life. Else: when it was queued.",
    )
    deleted_at = models.DateTimeField(null=True, blank=True)
    drafted_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When it was put in a composer, until its message is sent. So long it is its owner's and not in use: "
        "deleted_at is the same moment (workspaces.documents.documents).",
    )

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["workspace", "-created_at", "-id"], name="document_list", condition=Q(deleted_at=None)
            ),
            models.Index(
                fields=["status", "updated_at"],
                name="document_unread",
                condition=Q(status__in=["waiting", "reading"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "sha256"],
                name="one_document_a_content",
                condition=Q(deleted_at=None, owner=None),
            ),
            models.UniqueConstraint(
                fields=["owner", "sha256"],
                name="one_own_document_a_content",
                condition=Q(deleted_at=None, owner__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id  # not the title, which the admin would show

    @property
    def is_draft(self) -> bool:
        return self.drafted_at is not None


class DocumentPicture(models.Model):
    """Small picture of an image document, for pages and for models that accept images.

    It is re-encoded from the newest file, so that no metadata of the file is shown.
    """

    document = models.OneToOneField(
        Document, on_delete=models.CASCADE, primary_key=True, related_name="picture"
    )
    jpeg = models.BinaryField()
    width = models.PositiveSmallIntegerField()
    height = models.PositiveSmallIntegerField()

    def __str__(self) -> str:
        return f"{self.document_id}, {self.width} by {self.height}"


class DocumentVersion(models.Model):
    """An earlier file of a document. Search covers the newest file only."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    file_name = models.CharField(max_length=40, unique=True, editable=False)
    media_type = models.CharField(max_length=100)
    size = models.BigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64)
    version_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="document_versions"
    )
    version_at = models.DateTimeField()

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["document", "version"], name="one_version_a_number")]

    def __str__(self) -> str:
        return f"{self.document_id} version {self.version}"


class DocumentPassage(Owned, models.Model):
    """A section of a document's text. Its passages in order are the complete text, without overlap."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="passages")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, related_name="+")
    owner = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        db_index=False,  # passage_own indexes the few rows with an owner
        related_name="+",
        help_text="The document's.",
    )
    number = models.PositiveIntegerField(help_text="From 0, in reading order.")
    page = models.PositiveIntegerField(default=0, help_text="0 where the document has none.")
    heading = models.CharField(max_length=300, blank=True, default="")
    begins = models.PositiveIntegerField(help_text="Its first character's place in the text.")
    text = models.TextField()
    around = models.TextField(help_text="Its heading and its text with some of what stands before and after.")
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = OwnedQuerySet["DocumentPassage"].as_manager()

    class Meta:
        verbose_name_plural = "document passages"
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="one_passage_a_number")]
        indexes = [
            models.Index(fields=["workspace"], name="passage_live", condition=Q(deleted_at=None)),
            models.Index(fields=["owner"], name="passage_own", condition=Q(owner__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.number}"


ARTIFACT = 3  # number of the index kind for artifacts (workspaces.artifacts)
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
    """The state of an artifact after one change. The newest version is the current state."""

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
