"""Artifacts as a kind of passages: what the index has to know of them."""

from __future__ import annotations

from workspaces.index.kinds import Kind
from workspaces.models import Artifact
from workspaces.models.artifact import ARTIFACT, ARTIFACT_PLACE

ARTIFACTS = Kind(
    number=ARTIFACT,
    name="artifact",
    model=Artifact,
    place=ARTIFACT_PLACE,
    words="artifacts_counted_words",
    here="m.workspace_id = %(workspace)s::bigint AND m.owner_id IS NULL",
    own="m.owner_id = %(user)s::bigint AND -(%(user)s::bigint) = ANY(%(places)s::bigint[])",
    text="gist",
)
