"""Modes of answers, the steps of an answer, and the passages that an answer cites."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.models import Memory
from memoryhub.ids import PublicIdField
from workspaces.models import Document, DocumentPassage


class Mode(models.TextChoices):
    """The modes in which an answer can be written. ``chat.modes.registry`` lists those that a model supports."""

    CHAT = "chat", _("Chat")
    DEEP_THINK = "deep_think", _("Think")
    RESEARCH = "research", _("Research")

    @property
    def has_steps(self) -> bool:
        return self is not Mode.CHAT


class StepKind(models.TextChoices):
    PLAN = "plan", "Plan"
    THOUGHT = "thought", "Thought of the model"
    CHECK = "check", "Check against memory"
    RESEARCH = "research", "Research"
    READING = "reading", "Waiting for files"


class StepOutcome(models.TextChoices):
    """Outcomes of a step of an answer. NOTHING and OFF say why a check was not made."""

    PLANNED = "planned", "Planned"
    THOUGHT = "thought", "Thought"
    AGREES = "agrees", "Nothing differs"
    DIFFERS = "differs", "Something differs"
    NOTHING = "nothing", "Nothing to compare with"
    OFF = "off", "Memory is off"
    READ = "read", "Read"
    STOPPED = "stopped", "Stopped"
    TIMEOUT = "timeout", "Took too long"
    ERROR = "error", "Did not work"


FAILURES = (StepOutcome.STOPPED, StepOutcome.TIMEOUT, StepOutcome.ERROR)


class Step(models.Model):
    """A step of an answer, such as a check. It has only ids of memories, so that forgotten text does not remain."""

    # Set by ``chat.answer_steps`` for the reader: ids of visible memories, those that are not forgotten, and titles of
    # visible files by id.
    known: Collection[str]
    memories: Sequence[Memory]
    titles: Mapping[str, str]
    public_id = PublicIdField(prefix="step")
    message = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="steps")
    kind = models.CharField(max_length=10, choices=StepKind.choices)
    outcome = models.CharField(
        max_length=10, choices=StepOutcome.choices, blank=True, help_text="Empty while it runs."
    )
    text = models.TextField(
        blank=True, help_text="The plan or the thought; of a check the correction that the answer got."
    )
    findings: models.JSONField[Any, Any] = models.JSONField(
        default=list,
        blank=True,
        help_text="The answer's words, the id of the memory that speaks of them, whether they agree; of files that "
        "were waited for, the id of the document, its status and how much of it is found by its meaning.",
    )
    memory_ids = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    error = models.CharField(max_length=200, blank=True, help_text="Why it failed, fit for a person's eyes.")
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id}: {self.status}"

    @property
    def status(self) -> str:
        """ "running", "done" or "failed"."""
        if not self.outcome:
            return "running"
        return "failed" if self.outcome in FAILURES else "done"


class AnswerSource(models.Model):
    """A passage cited by an answer, and its position. The text is only in the document and deleted with it.

    The foreign key has no database constraint, because deleting a document can delete a hundred thousand passages. If
    only the passage is deleted, the answer still cites the document.
    """

    message = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="sources")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveSmallIntegerField(help_text="By which the answer cites it, from 1.")
    passage = models.ForeignKey(
        DocumentPassage,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    page = models.PositiveIntegerField(default=0, help_text="0 where the document has none.")
    heading = models.CharField(max_length=300, blank=True, default="")
    score = models.FloatField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["message", "number"], name="one_source_a_number")]

    def __str__(self) -> str:
        return f"[{self.number}] {self.document_id}:{self.passage_id}"

    def get_absolute_url(self) -> str:
        """Return the URL of the document's page at the passage. Loads the document's workspace and the passage."""
        ids = [self.document.workspace.public_id, self.document.public_id]
        page, at = reverse("workspaces:document", args=ids), self.passage_number
        return page if at is None else f"{page}?passage={at}#passage-{at}"

    @property
    def passage_number(self) -> int | None:
        """The position of the passage in the document, or None if the passage was deleted."""
        return self.passage.number if self.passage else None

    @property
    def label(self) -> str:
        """The title, page and heading, for display."""
        page = gettext("page %(number)s") % {"number": self.page} if self.page else ""
        return ", ".join(filter(None, (self.document.title, page, self.heading)))
