"""Forgetting an artifact for good: its versions, words and vectors."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from workspaces.actions.owned import note, require_right_to_forget
from workspaces.actions.removal import Counts, counted, purge_deleted
from workspaces.artifacts.artifacts import lock_artifact
from workspaces.audit import Verb
from workspaces.models import Artifact, User

PURGED_AT_ONCE = 500


def forget_artifact(artifact: Artifact, *, by: User) -> Counts:
    """Remove it for good, with all its versions, words and vectors; what went. Raises Forbidden."""
    with transaction.atomic():
        locked = lock_artifact(artifact, by, or_deleted=True)
        require_right_to_forget(locked, by)
        note(Verb.ARTIFACT_FORGOTTEN, locked, by)
        return remove([locked.pk])


def purge(*, now: datetime, seconds: float) -> int:
    rows = Artifact.objects.all()
    return purge_deleted(rows, remove, "artifacts", now=now, seconds=seconds, most=PURGED_AT_ONCE)


def remove(ids: list[int]) -> Counts:
    """Words and vectors go by the table's trigger."""
    return counted(Artifact.objects.filter(pk__in=ids).delete()[1])
