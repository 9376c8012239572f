"""What people ask for of the data kept about them. Written by ``workspaces.data_requests``."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.people import User


class RequestKind(models.TextChoices):
    COPY = "copy", later("A copy of your data")
    DELETION = "deletion", later("Deletion of your account")


class RequestState(models.TextChoices):
    OPEN = "open", later("Open")
    DONE = "done", later("Done")
    REFUSED = "refused", later("Refused")
    WITHDRAWN = "withdrawn", later("Withdrawn")


class DataRequestQuerySet(models.QuerySet["DataRequest"]):
    def open(self) -> DataRequestQuerySet:
        return self.filter(state=RequestState.OPEN)

    def overdue(self, now: datetime) -> DataRequestQuerySet:
        return self.open().filter(due_at__lt=now)


class DataRequest(models.Model):
    """It outlives the account: that a deletion was asked for and done can be shown, by ids alone."""

    public_id = PublicIdField(prefix="req")
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    person = models.CharField(max_length=32, help_text="Their id, also when they are gone.")
    kind = models.CharField(max_length=8, choices=RequestKind.choices)
    state = models.CharField(max_length=9, choices=RequestState.choices, default=RequestState.OPEN)
    reason = models.TextField(
        max_length=1000, blank=True, help_text="Why it was refused, as the person reads it."
    )
    asked_at = models.DateTimeField("asked")
    due_at = models.DateTimeField("due")
    ended_at = models.DateTimeField("ended", null=True)
    ended_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    expires_at = models.DateTimeField(null=True, help_text="Of a copy: until then it can be fetched.")

    objects = DataRequestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind"], condition=Q(state="open"), name="one_open_request_a_kind"
            )
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="open"), name="open_requests")]

    def __str__(self) -> str:
        return f"{self.kind} for {self.person}"

    def is_ready(self, now: datetime) -> bool:
        """Whether it is a copy that can be fetched."""
        return self.expires_at is not None and self.expires_at > now
