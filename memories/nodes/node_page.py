"""What the pages of memory nodes list, draw and offer."""

from __future__ import annotations

from django.db.models import Q

from memories.models import MemoryNode, NodeRelation
from memories.models.node import MemoryNodeQuerySet
from memories.nodes.nodes import fold, number_of, relations_among, with_counts
from workspaces.models import User, Workspace

MOST_DRAWN = 60
MOST_OFFERED = 50


def has_nodes(workspace: Workspace) -> bool:
    """Whether there is a topic to go to. One query."""
    return MemoryNode.objects.filter(workspace=workspace).exists()


def search_nodes(workspace: Workspace, user: User, query: str = "", *, after: str = "") -> MemoryNodeQuerySet:
    """By name, with counts: those whose name or kind holds the query, that follow the one with the id ``after``."""
    found = MemoryNode.objects.filter(workspace=workspace).order_by("folded", "pk")
    if query:
        found = found.filter(Q(folded__contains=fold(" ".join(query.split()))) | Q(kind__icontains=query))
    if after:
        last = MemoryNode.objects.filter(workspace=workspace, public_id=after).first()
        if last is None:
            return found.none()
        found = found.filter(folded__gt=last.folded)
    return with_counts(found, workspace, user)


def best_related(workspace: Workspace, user: User) -> tuple[list[MemoryNode], list[NodeRelation]]:
    """The nodes with most relations, at most MOST_DRAWN, with counts, and the relations among them."""
    most = MemoryNode.objects.filter(workspace=workspace).annotate(
        relation_count=number_of(NodeRelation.objects.all(), "source")
        + number_of(NodeRelation.objects.all(), "target")
    )
    keys = list(most.order_by("-relation_count", "folded").values_list("pk", flat=True)[:MOST_DRAWN])
    drawn = list(with_counts(MemoryNode.objects.filter(pk__in=keys), workspace, user))
    return drawn, relations_among(drawn)


def kinds(workspace: Workspace) -> list[str]:
    """Those in use, to choose from."""
    used = MemoryNode.objects.filter(workspace=workspace).exclude(kind="").order_by("kind")
    return list(used.values_list("kind", flat=True).distinct()[:MOST_OFFERED])


def relation_types(workspace: Workspace) -> list[str]:
    """Those in use, to choose from."""
    used = NodeRelation.objects.filter(source__workspace=workspace).order_by("relation")
    return list(used.values_list("relation", flat=True).distinct()[:MOST_OFFERED])
