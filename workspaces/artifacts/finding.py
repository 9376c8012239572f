"""Artifacts that say something about a query, best first."""

from __future__ import annotations

from dataclasses import dataclass

from workspaces.index.candidates import area_within
from workspaces.index.scores import excerpt, related
from workspaces.leaving_machine import Reach, in_reach
from workspaces.models import Artifact, User, Workspace
from workspaces.models.artifacts import ARTIFACT
from workspaces.models.documents import OWNED_HERE, OWNED_OWN, OWNED_PLACE
from workspaces.models.kinds import Kind


@dataclass(frozen=True)
class FoundArtifact:
    artifact: Artifact
    score: float
    excerpt: str


def find_artifacts(
    query: str, workspace: Workspace, user: User, *, limit: int, reach: Reach
) -> list[FoundArtifact]:
    """Return the artifacts this person may see here, personal ones where ``reach`` allows it. NotFound for a
    stranger. The query is embedded; words answer where that fails.
    """
    where = area_within(reach, workspace, user)
    query = query.replace("\x00", " ").strip()
    if not query or limit < 1:
        return []
    rows = in_reach(Artifact.objects.visible_to(user).live(), workspace, user, reach)
    found = related(ARTIFACTS, query, where)
    best = sorted(found, key=lambda ref: (-found[ref], ref))
    there = rows.select_related("workspace").in_bulk(best)
    shown = [there[ref] for ref in best if ref in there][:limit]
    return [FoundArtifact(each, found[each.pk], excerpt(each.content, query)) for each in shown]


# Artifacts as a kind of passages: what the index has to know of them.

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
