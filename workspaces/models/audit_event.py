"""Events of the audit log."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from workspaces.models.people import Workspace


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def of_workspace(self, workspace: Workspace) -> AuditEventQuerySet:
        return self.filter(workspace_id=workspace.public_id)

    def update(self, **changes: Any) -> int:
        raise TypeError("audit events are never changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("audit events are never deleted, but by workspaces.audit.prune")


class AuditEvent(models.Model):
    """Something that was done. Written by ``workspaces.audit.record`` alone; a trigger refuses changes and deletes.

    Ids are plain text, not relations: the row outlives the account, the workspace and what it was done to.
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    # Of workspaces.audit.Verb. No choices here, or each new one would ask for a migration.
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
