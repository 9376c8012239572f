"""Usage and cost of models, day by day, and budgets of a month. Numbers alone, no texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from workspaces.models.people import Workspace

if TYPE_CHECKING:
    from workspaces.models import User


class Purpose(models.TextChoices):
    """Purpose of a model call."""

    ANSWER = "answer", _("Answers")
    MEMORY = "memory", _("Noticing what to remember")
    SUMMARY = "summary", _("Summaries of long chats")
    RUN = "run", _("Runs and research")
    PROGRAM = "program", _("Other programs")
    INDEX = "index", _("Making things findable")


class ModelUse(models.Model):
    """Usage of one model on one day by one person in one workspace for one purpose: a sum, written by
    ``workspaces.spending.ledger``. A million answers of a thousand people in a month are some ten thousand rows.

    What is left of a person or a workspace that is deleted says no more whose it was. INDEX is of the installation: an
    embedder works for many at once.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    user: models.ForeignKey[User | None] = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    day = models.DateField(help_text="In UTC.")
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    model = models.CharField(max_length=200, blank=True, help_text="Empty: of somebody's own connection.")
    is_embedded = models.BooleanField(default=False, help_text="Of this installation: no budget counts it.")
    calls = models.BigIntegerField(default=0)
    estimated = models.BigIntegerField(
        default=0, help_text="Calls whose provider did not say what they took."
    )
    unpriced = models.BigIntegerField(default=0, help_text="Calls that nobody had set a price of.")
    tokens_in = models.BigIntegerField(default=0)
    cached = models.BigIntegerField(default=0, help_text="Of those in, from the provider's cache.")
    tokens_out = models.BigIntegerField(default=0)
    reasoning = models.BigIntegerField(default=0, help_text="Of those out, thoughts.")
    memory = models.BigIntegerField(default=0, help_text="Of those in, recalled memories; estimated.")
    documents = models.BigIntegerField(default=0, help_text="Of those in, passages of documents; estimated.")
    tools = models.BigIntegerField(
        default=0, help_text="Of those in, tools and what they returned; estimated."
    )
    cost = models.DecimalField(
        max_digits=24,
        decimal_places=8,
        default=0,
        help_text="In the installation's currency, as far as priced.",
    )

    class Meta:
        verbose_name_plural = "use of models"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "day", "purpose", "model", "is_embedded"],
                name="one_sum_a_day",
            ),
            models.UniqueConstraint(
                fields=["day", "model"], condition=Q(purpose=Purpose.INDEX), name="one_sum_of_index_a_day"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "day"], name="use_of_workspace"),
            models.Index(fields=["user", "day"], name="use_of_person"),
            models.Index(fields=["day"], name="use_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.calls:,} calls on {self.day}"


class Budget(models.Model):
    """Limit of a workspace, or of a person in all workspaces, for a month. Written by
    ``workspaces.spending.budgets``.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, null=True, related_name="budget")
    user: models.OneToOneField[User | None] = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="budget"
    )
    tokens = models.BigIntegerField(
        null=True, blank=True, help_text="In and out together. Empty: any number."
    )
    money = models.DecimalField(
        max_digits=13, decimal_places=2, null=True, blank=True, help_text="Empty: any amount."
    )
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(workspace__isnull=False, user=None) | Q(workspace=None, user__isnull=False),
                name="budget_of_one",
            )
        ]

    def __str__(self) -> str:
        return f"Budget {self.pk}"
