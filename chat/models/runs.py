"""The tables of runs, written by ``chat.runs``, with all that another process needs to continue a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace
from workspaces.models.language_models import Connection

STUCK = timedelta(minutes=10)


class RunMode(models.TextChoices):
    LOOP = "loop", _("One step")
    PLAN = "plan", _("Planned tasks")
    TEAM = "multi-agent", _("Team")
    RESEARCH = "research", _("Research")


class RunStatus(models.TextChoices):
    RUNNING = "running", _("Running")
    WAITING = "waiting", _("Needs your approval")
    STOPPED = "stopped", _("Stopped")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User) -> RunQuerySet:
        """Filter to runs in workspaces of this user.

        A private run in a chat is visible to the chat's creator only; without a chat, to the user who started it.
        """
        readable = Q(is_private=False) | Q(chat=None, user=user) | Q(chat__created_by=user)
        return self.filter(readable, workspace__in=Workspace.objects.visible_to(user))


class Run(models.Model):
    """An objective that agents work on in steps. ``states``: of steps and tasks. ``board``: the tasks of a team."""

    public_id = PublicIdField(prefix="run")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="runs")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="runs", help_text="Who started it.")
    connection = models.ForeignKey(
        Connection, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    mode = models.CharField(max_length=12, choices=RunMode.choices)
    objective = models.TextField()
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.RUNNING)
    error = models.CharField(max_length=300, blank=True)
    is_private = models.BooleanField(default=False, help_text="Of a private chat: nobody else sees it.")
    answer = models.ForeignKey(
        "chat.Message",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="runs",
        help_text="The answer in a chat that it is made for.",
    )
    chat = models.ForeignKey(
        "chat.Chat",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="runs",
        help_text="Whose research it is, or was done again from: who may read it follows that, whoever did it again.",
    )
    reviews_plan = models.BooleanField(
        default=False, help_text="Its plan is shown before anything of it is done."
    )
    plan: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    board: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    states: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    limits: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    expected_tokens = models.BigIntegerField(default=0, help_text="As they were guessed before it began.")
    expected_cost = models.DecimalField(
        max_digits=18,
        decimal_places=8,
        null=True,
        blank=True,
        help_text="Empty where the model has no price.",
    )
    rounds = models.PositiveIntegerField(default=0, help_text="Replies of the model so far.")
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=18,
        decimal_places=8,
        null=True,
        blank=True,
        help_text="In the installation's currency, of the replies whose model had a price.",
    )
    memory_ids = ArrayField(
        models.CharField(max_length=32),
        default=list,
        blank=True,
        help_text="What it saved to long-term memory.",
    )
    held_personal = models.BooleanField(
        default=False,
        editable=False,
        help_text="It was told of something personal: it stays its person's own when its chat is opened.",
    )
    web_urls = ArrayField(
        models.TextField(),
        default=list,
        blank=True,
        help_text="What its searches found: it reads no other page.",
    )
    shown: models.JSONField[Any, Any] = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        editable=False,
        help_text="What its tools quoted: whose, id, from, to. Never the text.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    deadline_at = models.DateTimeField(help_text="When its minutes are up.")
    served_at = models.DateTimeField(default=timezone.now, help_text="When a step of it was last taken up.")
    progressed_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="run_list"),
            models.Index(fields=["progressed_at"], name="run_at_work", condition=Q(status="running")),
        ]

    def __str__(self) -> str:
        return f"{self.public_id}: {self.status}"

    @property
    def is_over(self) -> bool:
        return self.status in (RunStatus.DONE, RunStatus.FAILED)

    @property
    def is_own(self) -> bool:
        """Whether the run is visible only to the user who started it."""
        return self.is_private and (self.chat is None or self.chat.created_by_id == self.user_id)


class RunTemplateQuerySet(models.QuerySet["RunTemplate"]):
    def visible_to(self, user: User) -> RunTemplateQuerySet:
        """Filter to the templates that this user may see. The caller filters to a workspace of the user.

        A template made from research in a chat is hidden while that chat is private, except from the chat's creator.
        """
        readable = Q(chat=None) | Q(chat__is_private=False) | Q(chat__created_by=user)
        return self.filter(readable)


class RunTemplate(models.Model):
    """The objective, plan and settings of a run, from which every editor of the workspace can start new runs."""

    public_id = PublicIdField(prefix="rtp")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="run_templates")
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    chat = models.ForeignKey("chat.Chat", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    name = models.CharField(max_length=80)
    mode = models.CharField(max_length=12, choices=RunMode.choices)
    objective = models.TextField()
    plan: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    limits: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = RunTemplateQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_run_template_a_name")]

    def __str__(self) -> str:
        return self.public_id


class RunTask(models.Model):
    """A task of the plan or the team's board, for display."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tasks")
    ref = models.CharField(max_length=60, help_text="Its id in the plan.")
    position = models.PositiveSmallIntegerField()
    title = models.CharField(max_length=200)
    depends_on = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    status = models.CharField(max_length=10, default="waiting")
    member = models.CharField(max_length=60, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["run", "ref"], name="one_task_a_ref")]

    def __str__(self) -> str:
        return f"{self.ref}: {self.status}"


class RunStepStatus(models.TextChoices):
    READY = "ready", _("Ready")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class RunStep(models.Model):
    """A unit of work for one worker. Each claim increments ``lease``, and only the latest claim may write."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="+", help_text="The run's, for fair turns."
    )
    ref = models.CharField(max_length=80)
    task = models.CharField(max_length=60, blank=True, help_text="Its task's id.")
    unit: models.JSONField[Any, Any] = models.JSONField(help_text="All that a worker needs to do it.")
    status = models.CharField(max_length=10, choices=RunStepStatus.choices, default=RunStepStatus.READY)
    lease = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Since the last step forward.")
    beat_at = models.DateTimeField(null=True, blank=True, help_text="The last sign of life of who does it.")
    not_before = models.DateTimeField(default=timezone.now)
    transcript: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    rounds = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["run", "ref"], name="one_step_a_ref")]
        indexes = [
            models.Index(
                fields=["status", "user", "id"],
                name="run_step_open",
                condition=Q(status__in=["ready", "running"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.ref}: {self.status}"


class RunEntry(models.Model):
    """An entry of the run's memory. Its JSON is text, because Postgres's JSON types reject some valid JSON."""

    # Only one index begins with the run. Without statistics of the table Postgres might choose another such index, and
    # sort every entry to list the newest.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="entries", db_index=False)
    key = models.CharField(max_length=300)
    kind = models.CharField(max_length=12)
    json = models.TextField()
    size = models.PositiveIntegerField(help_text="Bytes.")
    source = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - none is not an empty one
    title = models.TextField(null=True, blank=True)  # noqa: DJ001
    description = models.TextField(null=True, blank=True)  # noqa: DJ001
    created_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1, help_text="Counts how often it was written.")

    class Meta:
        verbose_name_plural = "run entries"
        ordering = ["created_at", "id"]
        constraints = [models.UniqueConstraint(fields=["key", "run"], name="one_entry_a_key")]
        indexes = [models.Index(fields=["run", "-created_at", "-id"], name="run_entries_newest")]

    def __str__(self) -> str:
        return self.key


class RunEvent(models.Model):
    """An event of a run. It contains ids and numbers, but no texts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    step = models.CharField(max_length=80, blank=True)
    kind = models.CharField(max_length=20)
    data: models.JSONField[Any, Any] = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["run", "id"], name="run_events")]

    def __str__(self) -> str:
        return f"{self.kind} {self.step}"
