"""Turns of conversations that API clients keep themselves."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace
from workspaces.models.connections import Connection


class PassingTurn(models.Model):
    """A turn of an API client. Its text is stored until extraction; then only the fingerprint remains.

    A client sends its whole conversation with every request and retry, so the ``fingerprint`` ensures that each turn is
    extracted once. Written by ``chat.turns.extraction``.
    """

    public_id = PublicIdField(prefix="turn")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey(
        Connection, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    conversation = models.CharField(max_length=32, help_text="Of a keyed hash of its beginning.")
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="Keyed hash of all up to the question."
    )
    said: models.JSONField[Any, Any] = models.JSONField(
        default=list, blank=True, help_text="[role, text] of the question, the last, and of some before it."
    )
    shown: models.JSONField[Any, Any] = models.JSONField(
        default=list, blank=True, help_text="Words before the model that no person said."
    )
    shown_more = models.BooleanField(
        default=False, db_default=False, help_text="It was shown more than these: pictures, files, too many."
    )
    answer = models.TextField(blank=True)
    memory_ids = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    created_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When it was handed on to be mined.")

    def __str__(self) -> str:
        return self.public_id
