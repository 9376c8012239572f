"""Models of the audit log and of webhooks."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField
from workspaces.models.users import User
from workspaces.models.workspaces import Workspace


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def of_workspace(self, workspace: Workspace) -> AuditEventQuerySet:
        return self.filter(workspace_id=workspace.public_id)

    def update(self, **changes: Any) -> int:
        raise TypeError("audit events are never changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("audit events are never deleted, but by workspaces.audit.prune")


class AuditEvent(models.Model):
    """An entry of the audit log. Only ``workspaces.audit.record`` writes it; a trigger refuses changes and deletes.

    Ids are plain text without foreign keys, because the entry outlives the account, the workspace and its target.
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    # A workspaces.audit.Verb. Without choices, because each new verb would need a migration.
    verb = models.CharField(max_length=40)
    by_id = models.CharField("person", max_length=32, blank=True)
    by_name = models.CharField("name then", max_length=150, blank=True)
    workspace_id = models.CharField("workspace", max_length=32, blank=True)
    target = models.CharField(max_length=32, blank=True)
    details = models.JSONField(default=dict, blank=True)
    network = models.CharField(max_length=50, blank=True, help_text="Their address without its last part.")
    request_id = models.CharField("request", max_length=64, blank=True)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["workspace_id", "-id"], name="audit_of_workspace"),
            models.Index(fields=["by_id", "-id"], name="audit_of_person"),
            models.Index(fields=["verb", "-id"], name="audit_of_verb"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.target}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("audit events are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("audit events are never deleted, but by workspaces.audit.prune")


# Webhooks of a workspace and their deliveries. Only ``workspaces.webhooks`` writes them.

WEBHOOK_URL_LENGTH = 1000
WEBHOOK_NAME_LENGTH = 80


class WebhookEvent(models.TextChoices):
    MEMORY_SAVED = "memory.saved", "A memory was saved"
    MEMORY_CHANGED = "memory.changed", "A memory was changed"
    MEMORY_FORGOTTEN = "memory.forgotten", "A memory was forgotten"
    RUN_FINISHED = "run.finished", "A run has finished"
    DOCUMENT_READY = "document.ready", "A document is ready"


class DeliveryStatus(models.TextChoices):
    WAITING = "waiting", later("Waiting")
    DELIVERED = "delivered", later("Delivered")
    FAILED = "failed", later("Failed")


class Webhook(models.Model):
    """A webhook of a workspace.

    ``sealed_before``: the previous secret, encrypted. Until ``before_until``, deliveries are signed with it too.
    """

    public_id = PublicIdField(prefix="hook")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=WEBHOOK_NAME_LENGTH)
    url = models.CharField("address", max_length=WEBHOOK_URL_LENGTH)
    events = ArrayField(models.CharField(max_length=30))
    with_text = models.BooleanField(
        default=False, help_text="What was saved or changed is sent along, not only its id."
    )
    sealed_secret = models.TextField(editable=False)
    sealed_before = models.TextField(blank=True, default="", editable=False)
    before_until = models.DateTimeField(null=True, editable=False)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    failing_since = models.DateTimeField(null=True, help_text="Since then nothing was delivered.")
    disabled_at = models.DateTimeField(null=True)
    disabled_for = models.CharField(max_length=300, blank=True, default="", help_text="Why, if not by hand.")

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None


class WebhookDelivery(models.Model):
    """Delivery of one event to a webhook. Only ids are stored; the text is read when the delivery is sent.

    ``public_id`` is sent as ``webhook-id``, and is the same at every attempt.
    """

    public_id = PublicIdField(prefix="evt")
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=30)
    about = models.CharField(max_length=32, help_text="The id of what it happened to.")
    action = models.CharField(max_length=20, help_text="How: create, edit, restore …")
    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(null=True)
    attempted_at = models.DateTimeField(null=True)
    answer_code = models.PositiveIntegerField(null=True, help_text="The HTTP status of the last answer.")
    error = models.CharField(max_length=300, blank=True, default="", help_text="What went wrong last.")

    class Meta:
        verbose_name_plural = "webhook deliveries"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["webhook", "-created_at", "-id"], name="delivery_list"),
            models.Index(
                fields=["webhook", "next_attempt_at"], name="delivery_due", condition=Q(status="waiting")
            ),
            models.Index(fields=["created_at"], name="delivery_age"),
        ]

    def __str__(self) -> str:
        return self.public_id
