"""An artifact from elsewhere with all its versions: what an import stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from workspaces.access import lock_as_editor
from workspaces.actions.owned import note
from workspaces.artifacts.delicate import refuse_delicate
from workspaces.artifacts.kind import ARTIFACTS
from workspaces.artifacts.written import Written, cleaned, gist_of, said
from workspaces.audit import Verb
from workspaces.index.vector_rows import queue_embedding
from workspaces.index.words import index_words
from workspaces.models import Artifact, ArtifactVersion, User
from workspaces.quotas import require_room


@dataclass(frozen=True)
class Past:
    """A version, as it was made elsewhere."""

    written: Written
    by: User | None
    by_model: bool
    at: datetime
    imported: bool = False


def checked(versions: Sequence[Past]) -> list[Past]:
    """Return them cleaned, oldest first. Raises Invalid, or SecretRefused: a file cannot confirm."""
    made = [replace(each, written=cleaned(each.written)) for each in versions]
    before = ""
    for each in made:
        refuse_delicate(before, said(each.written), may_ask=False)
        before = said(each.written)
    return made


def bring(artifact: Artifact, versions: Sequence[Past], *, by: User) -> None:
    """Store this new one with these ``checked`` versions, numbered from 1. Editors only. Raises QuotaReached."""
    rows = [
        ArtifactVersion(
            artifact=artifact,
            number=number,
            title=each.written.title,
            language=each.written.language,
            content=each.written.content,
            size=len(each.written.content.encode()),
            by=each.by if each.by and by.is_superuser else by,  # whose room it takes, and nobody else's
            by_model=each.by_model,
            imported=each.imported or each.by_model or (by.is_superuser and each.by not in (None, by)),
            created_at=each.at,
        )
        for number, each in enumerate(versions, 1)
    ]
    newest = versions[-1].written
    artifact.title, artifact.content, artifact.language = newest.title, newest.content, newest.language
    artifact.gist, artifact.version = gist_of(newest, artifact.kind), len(rows)
    with transaction.atomic():
        lock_as_editor(artifact.workspace, by)
        require_room("bytes", by, sum(row.size for row in rows))
        artifact.save(force_insert=True)
        ArtifactVersion.objects.bulk_create(rows)
        index_words(ARTIFACTS, [artifact.pk])
        queue_embedding(ARTIFACTS, [artifact.pk])
        note(Verb.ARTIFACT_ADDED, artifact, by)
