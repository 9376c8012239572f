"""An import: an uploaded file, the expected outcome of each line, and its progress."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace

KEPT = timedelta(days=7)  # after the last progress, unfinished uploads and all rows are deleted
MAX_ATTEMPTS = 5
LEAST_DONE = 0.02  # progress from which the remaining time is estimated


class ImportKind(models.TextChoices):
    MEMORYHUB = "memoryhub", later("MemoryHub export")
    CHATGPT = "chatgpt", later("ChatGPT export")
    CLAUDE = "claude", later("Claude export")
    STATEMENTS = "statements", later("List of statements")


class ImportStatus(models.TextChoices):
    PREVIEW = "preview", later("Preview")
    RUNNING = "running", later("Running")
    STOPPED = "stopped", later("Stopped")
    DONE = "done", later("Done")
    FAILED = "failed", later("Failed")


class ImportQuerySet(models.QuerySet["Import"]):
    def of(self, user: User) -> ImportQuerySet:
        return self.filter(user=user)

    def at_work(self) -> ImportQuerySet:
        """Filter to imports that are being checked or stored, and so need a background job."""
        return self.filter(Q(status=ImportStatus.RUNNING) | Q(status=ImportStatus.PREVIEW, checked_at=None))

    def expired(self, now: datetime) -> ImportQuerySet:
        return self.filter(progressed_at__lt=now - KEPT).exclude(status=ImportStatus.RUNNING)


@dataclass(frozen=True)
class Searched:
    """Totals of the preview's search for memories in the importer's messages, or in a sample of many."""

    messages: int = 0
    searched: int = 0
    characters: int = 0  # characters that the encoder read
    found: int = 0  # memories that would be stored

    @classmethod
    def stored(cls, counts: dict[str, int]) -> Searched:
        """Create the totals from the JSON stored in ``Import.searched``. Missing fields are 0."""
        return cls(**{each.name: counts.get(each.name, 0) for each in fields(cls)})

    @property
    def is_sample(self) -> bool:
        return self.searched < self.messages

    @property
    def expected(self) -> int:
        """The estimated number of memories in all messages, extrapolated from the sample to two significant digits."""
        return int(float(f"{self.found * self.messages / max(1, self.searched):.2g}"))


class Import(models.Model):
    """An upload and its progress, visible only to the uploader. Written by ``chat.import_export.import_jobs``.

    First every line is checked (status "preview", until ``checked_at`` is set). After the user confirms, the lines are
    stored. An export of another product is first converted to a file of such lines.
    """

    public_id = PublicIdField(prefix="imp")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="imports")
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="imports",
        help_text="Where everything goes. Empty: each workspace of the file to its own.",
    )
    filename = models.CharField(max_length=150, blank=True)
    kind = models.CharField(max_length=20, choices=ImportKind.choices)
    size = models.BigIntegerField(help_text="Bytes.")
    status = models.CharField(max_length=10, choices=ImportStatus.choices, default=ImportStatus.PREVIEW)
    takes_chats = models.BooleanField(default=True)
    takes_memories = models.BooleanField(default=True)
    error = models.CharField(max_length=300, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Since the last step forward.")

    read_bytes = models.BigIntegerField(default=0, help_text="Of the upload; shows how far the look is.")
    read_count = models.BigIntegerField(
        default=0, help_text="Conversations or entries taken from the upload."
    )
    read_lines = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the entry after those, where it is taken in parts."
    )
    searched = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="How many of the importer's messages the preview searched for memories.",
    )
    looked_bytes = models.BigIntegerField(default=0, help_text="Of the file of lines.")
    looked_lines = models.PositiveIntegerField(default=0)
    stored_bytes = models.BigIntegerField(default=0)
    stored_lines = models.PositiveIntegerField(default=0)
    foreseen = models.JSONField(default=dict, help_text="{kind: {outcome: number}}, of the look.")
    outcomes = models.JSONField(default=dict, help_text="The same, of the storing.")
    places = models.JSONField(
        default=dict, help_text="Which workspace or assistant of the file is which here."
    )
    newest_memory = models.BigIntegerField(
        null=True,
        help_text="The last memory's key when the storing began: with older ones texts are compared.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    began_at = models.DateTimeField(
        null=True, blank=True, help_text="When the look or the storing began, or went on after a stop."
    )
    began_progress = models.FloatField(default=0, db_default=0.0, help_text="How far it was then.")
    checked_at = models.DateTimeField(null=True, blank=True)
    progressed_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="import_list"),
            models.Index(
                fields=["progressed_at"],
                name="import_at_work",
                condition=Q(status="running") | Q(status="preview", checked_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id}: {self.status}"

    @property
    def is_checking(self) -> bool:
        return self.status == ImportStatus.PREVIEW and self.checked_at is None

    @property
    def is_at_work(self) -> bool:
        return self.is_checking or self.status == ImportStatus.RUNNING

    @property
    def sample(self) -> Searched | None:
        """The counts of the preview if it searched only a sample, else None."""
        counts = Searched.stored(self.searched)
        return counts if counts.is_sample else None

    @property
    def progress(self) -> float:
        """The progress of the check, or of storing after that, from 0 to 1."""
        if self.status == ImportStatus.DONE:
            return 1.0
        if self.checked_at is None or self.sample:  # a sampled upload is read again to be stored
            return min(1.0, self.read_bytes / max(1, self.size))
        return min(1.0, self.stored_bytes / max(1, self.looked_bytes))

    def seconds_left(self, now: datetime) -> int | None:
        """Return the estimated remaining seconds, or None during the first two percent and while no job is running."""
        done = self.progress - self.began_progress
        if self.began_at is None or done < LEAST_DONE or not self.is_at_work:
            return None
        return round((now - self.began_at).total_seconds() * (1 - self.progress) / done)

    @property
    def expires_at(self) -> datetime:
        return self.progressed_at + KEPT


class Outcome(models.TextChoices):
    NEW = "new", "Would be stored"
    UPDATE = "update", "Would change a memory"
    DUPLICATE = "duplicate", "Known already"
    REFUSED = "refused", "Refused"


class ImportRow(models.Model):
    """The expected outcome of a line and, after it was stored, the actual one. The line's text is only in the file."""

    of = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows")
    number = models.PositiveIntegerField(help_text="Of the line.")
    offset = models.BigIntegerField(help_text="Where the line begins, in bytes.")
    kind = models.CharField(max_length=10)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    reason = models.CharField(max_length=200, blank=True)
    duplicate_of = models.CharField(max_length=32, blank=True, help_text="The id of what says it already.")
    became = models.CharField(
        max_length=32, blank=True, default="", help_text="The id of what was made of it, or changed by it."
    )
    same_as = models.PositiveIntegerField(null=True, help_text="The line that says it already.")
    fingerprint = models.BigIntegerField(null=True, help_text="Of a statement's text: equal ones meet here.")

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["of", "number"], name="one_row_a_line")]
        indexes = [
            models.Index(fields=["of", "outcome", "number"], name="import_rows"),
            models.Index(
                fields=["of", "fingerprint"],
                name="import_equal",
                condition=Q(fingerprint__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.outcome}"
