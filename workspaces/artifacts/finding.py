"""Artifacts that say something about a query, best first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db.models import Q
from django.utils.translation import gettext as _

from memoryhub.errors import NotFound
from memoryhub.llm.errors import ModelNotLocal
from workspaces.artifacts.kind import ARTIFACTS
from workspaces.index.candidates import search_area
from workspaces.index.scores import excerpt, related
from workspaces.leaving_machine import Reach
from workspaces.models import Artifact, User, Workspace


@dataclass(frozen=True)
class FoundArtifact:
    artifact: Artifact
    score: float
    excerpt: str


def find_artifacts(
    query: str, workspace: Workspace, user: User, *, limit: int, reach: Reach
) -> list[FoundArtifact]:
    """Those this person may see here, their personal ones among them where ``reach`` allows it. NotFound for a
    stranger. The query is embedded; words answer where that fails.
    """
    where = search_area(workspace.pk, user.pk)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if reach.leaves:
        if where.local_only:
            raise ModelNotLocal
        where = where.without_what_stays()
    where = replace(where, personal=where.personal and reach.personal)
    query = query.replace("\x00", " ").strip()
    if not query or limit < 1:
        return []
    here, own = Q(workspace=workspace, owner=None), Q(owner=user)
    rows = Artifact.objects.visible_to(user).live().filter(here | own if where.personal else here)
    found = related(ARTIFACTS, query, where)
    best = sorted(found, key=lambda ref: (-found[ref], ref))
    there = rows.select_related("workspace").in_bulk(best)
    shown = [there[ref] for ref in best if ref in there][:limit]
    return [FoundArtifact(each, found[each.pk], excerpt(each.content, query)) for each in shown]
