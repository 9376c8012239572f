"""The table of the steps by which an answer is thought through."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.ids import PublicIdField


class Mode(models.TextChoices):
    """How an answer is made; ``chat.modes.registry`` says which of them a model can do."""

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
    """What a step came to. Of a check that was not made the outcome says why."""

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
    """What deep thinking did beside writing its answer. Of memories only the ids: their text may be forgotten."""

    # What the reader may know of, loaded by ``chat.modes.shown_steps``: ids of memories, titles of files by their ids.
    known: Collection[str]
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
        """running, done or failed."""
        if not self.outcome:
            return "running"
        return "failed" if self.outcome in FAILURES else "done"
