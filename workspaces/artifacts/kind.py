"""Artifacts as a kind of passages: what the index has to know of them."""

from __future__ import annotations

from workspaces.index.kinds import Kind
from workspaces.models import Artifact
from workspaces.models.artifact import ARTIFACT
from workspaces.models.owned import OWNED_HERE, OWNED_OWN, OWNED_PLACE

ARTIFACTS = Kind(
    number=ARTIFACT,
    name="artifact",
    model=Artifact,
    place=OWNED_PLACE,
    words="artifacts_counted_words",
    here=OWNED_HERE,
    own=OWNED_OWN,
    text="gist",
)
