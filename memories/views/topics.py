"""Pages of memory nodes: the list with its graph, and one node with its memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages as notices
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories import topics
from memories.models import MemoryNode, NodeRelation
from memories.models.topics import (
    KIND_LENGTH,
    NODE_DESCRIPTION_LENGTH,
    NODE_NAME_LENGTH,
    RELATION_LENGTH,
    MemoryNodeQuerySet,
)
from memories.topics import fold, relations_among, with_counts
from memories.views.panel_context import PanelFilters, filtered, workspace_context
from workspaces.accounts.reauthentication import confirmed
from workspaces.models import Role, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm


def _input_with_suggestions(names: str) -> forms.TextInput:
    """Return a text input with suggestions. ``names`` is the id of a ``<datalist>`` in the page."""
    return forms.TextInput(attrs={"list": names, "autocomplete": "off"})


class NodeForm(DomainForm):
    name = forms.CharField(
        label=later("Name"),
        max_length=NODE_NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": later("For example: Apollo")}),
    )
    kind = forms.CharField(
        label=later("Kind"),
        max_length=KIND_LENGTH,
        required=False,
        widget=_input_with_suggestions("usual-kinds"),
    )
    description = forms.CharField(
        label=later("What it is"),
        max_length=NODE_DESCRIPTION_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    gathers_by_name = forms.BooleanField(
        label=later("Gather memories that name it"), required=False, initial=True
    )

    @classmethod
    def of(cls, node: MemoryNode) -> NodeForm:
        return cls(initial={name: getattr(node, name) for name in cls.base_fields}, auto_id="node-%s")


class RelationForm(DomainForm):
    """Form for a relation such as “works on Apollo”, in which the other node is given by its name."""

    relation = forms.CharField(
        label=later("Relation"), max_length=RELATION_LENGTH, widget=_input_with_suggestions("usual-relations")
    )
    other = forms.CharField(
        label=later("The other topic"),
        max_length=NODE_NAME_LENGTH,
        widget=_input_with_suggestions("node-names"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "relation-%s")
        super().__init__(*args, **kwargs)
        self.fields["relation"].widget.attrs["placeholder"] = later("works on")


MOST_DRAWN = 60
MOST_OFFERED = 50


def search_nodes(workspace: Workspace, user: User, query: str, *, after: str) -> MemoryNodeQuerySet:
    """Return the nodes after the one with the id ``after`` whose name or kind contains the query, with counts."""
    nodes = topics.nodes_in(workspace, user).order_by("folded", "pk")
    if query:
        nodes = nodes.filter(Q(folded__contains=fold(" ".join(query.split()))) | Q(kind__icontains=query))
    if after:
        last = topics.nodes_in(workspace, user).filter(public_id=after).first()
        if last is None:
            return nodes.none()
        nodes = nodes.filter(Q(folded__gt=last.folded) | Q(folded=last.folded, pk__gt=last.pk))
    return with_counts(nodes, workspace, user)


def best_related(workspace: Workspace, user: User) -> tuple[list[MemoryNode], list[NodeRelation]]:
    """Return the nodes with the most relations, at most MOST_DRAWN, with counts, and the relations among them."""
    most = topics.nodes_in(workspace, user).annotate(
        relation_count=topics.number_of_relations(workspace, user)
    )
    keys = list(most.order_by("-relation_count", "folded").values_list("pk", flat=True)[:MOST_DRAWN])
    drawn = list(with_counts(MemoryNode.objects.filter(pk__in=keys), workspace, user))
    return drawn, relations_among(drawn)


def kinds(workspace: Workspace, user: User) -> list[str]:
    used = topics.nodes_in(workspace, user).exclude(kind="").order_by("kind")
    return list(used.values_list("kind", flat=True).distinct()[:MOST_OFFERED])


def relation_types(workspace: Workspace, user: User) -> list[str]:
    seen = topics.nodes_in(workspace, user)
    used = NodeRelation.objects.filter(source__in=seen, target__in=seen).order_by("relation")
    return list(used.values_list("relation", flat=True).distinct()[:MOST_OFFERED])


NODES_SHOWN = 50
NAMES_OFFERED = 200
MEMORIES_SHOWN = 25
RELATIONS_SHOWN = 100
NEIGHBOURS_SHOWN = 60
FOUND = 8


def _node(
    request: PageRequest, ws_id: str, node_id: str, need: Role = Role.VIEWER
) -> tuple[MemoryNode, dict[str, Any]]:
    workspace, context = workspace_context(request, ws_id, need)
    node = topics.get_node(request.user, node_id, workspace=workspace)
    return node, context | {"node": node}


def _to(node: MemoryNode, part: str = "") -> HttpResponse:
    return redirect(reverse("memories:node", args=[node.workspace.public_id, node.public_id]) + part)


def _drawing(drawn: Sequence[MemoryNode], relations: Sequence[NodeRelation], ws_id: str) -> str:
    """Return the graph as JSON for static/js/node-map.js. The page also lists its content as text."""
    return json.dumps(
        {
            "nodes": [
                {
                    "id": node.public_id,
                    "name": node.name,
                    "kind": node.kind,
                    "memories": node.memory_count,  # type: ignore[attr-defined]  # annotated by with_counts
                    "url": reverse("memories:node", args=[ws_id, node.public_id]),
                }
                for node in drawn
            ],
            "relations": [
                [each.source.public_id, each.relation, each.target.public_id] for each in relations
            ],
        }
    )


@require_http_methods(["GET", "POST"])
def node_list(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the graph of the most related nodes and a list of all, paged by ``?after=``. On POST, create a node."""
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace, context = workspace_context(request, ws_id, need)
    form = NodeForm(request.POST if request.method == "POST" else None)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if topic := form.done(lambda: topics.create_node(workspace, **form.cleaned_data, **who)):
        notices.success(request, _("“%(name)s” has been created.") % {"name": topic.name})
        return _to(topic)
    query, after = request.GET.get("q", "").strip(), request.GET.get("after", "")
    shown = list(search_nodes(workspace, request.user, query, after=after)[: NODES_SHOWN + 1])
    more = shown[NODES_SHOWN - 1].public_id if len(shown) > NODES_SHOWN else ""
    drawn, relations = ([], []) if query or after else best_related(workspace, request.user)
    context |= {
        "form": form,
        "nodes": shown[:NODES_SHOWN],
        "more": more,
        "query": query,
        "after": after,
        "drawn": drawn,
        "relations": relations,
        "drawing": _drawing(drawn, relations, ws_id),
        "total": topics.nodes_in(workspace, request.user).count(),
        "kinds": kinds(workspace, request.user),
        "suggested": [] if query or after else topics.suggest_topics(workspace, request.user),
        "merges": [] if query or after else topics.suggest_merges(workspace, request.user),
    }
    return render(request, "memories/nodes/list.html", context, status=422 if form.errors else 200)


def _page(request: PageRequest, node: MemoryNode, context: dict[str, Any], **forms: Any) -> HttpResponse:
    user, workspace = request.user, node.workspace
    depth = {"2": 2, "3": 3}.get(request.GET.get("depth", ""), 1)
    around = topics.neighbours(node, user, depth=depth, limit=NEIGHBOURS_SHOWN)
    rows = topics.gathered(node, user, after=request.GET.get("after", "")).listed()
    gathered = list(rows[: MEMORIES_SHOWN + 1])
    counted = topics.counted(node, user)
    context |= {
        "node": counted,
        "memories": gathered[:MEMORIES_SHOWN],
        "next_memory": gathered[MEMORIES_SHOWN - 1].public_id if len(gathered) > MEMORIES_SHOWN else "",
        "relations": topics.relations_of(node, user).order_by("pk")[:RELATIONS_SHOWN],
        "around": around,
        "depth": depth,
        "depths": range(1, topics.DEEPEST + 1),
        "drawing": _drawing([counted, *around.nodes], around.relations, workspace.public_id),
        "form": NodeForm.of(node),
        "relation_form": RelationForm(),
        "names": topics.nodes_in(workspace, user).exclude(pk=node.pk)[:NAMES_OFFERED],
        "relation_types": relation_types(workspace, user),
        "kinds": kinds(workspace, user),
    } | forms
    failed = any(form.errors for form in forms.values())
    return render(request, "memories/nodes/node.html", context, status=422 if failed else 200)


@require_http_methods(["GET", "POST"])
def node(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Show a node, or change its fields on POST."""
    topic, context = _node(request, ws_id, node_id, Role.EDITOR if request.method == "POST" else Role.VIEWER)
    if request.method == "GET":
        return _page(request, topic, context)
    form = NodeForm(request.POST)
    if form.done(lambda: topics.update_node(topic, **form.cleaned_data, now=timezone.now())):
        notices.success(request, _("Saved."))
        return _to(topic)
    topic, context = _node(request, ws_id, node_id)  # reload: update_node has changed the object
    return _page(request, topic, context, form=form)


@require_GET
def find_memories(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Return an HTML fragment with memories that match the search text and are not linked to the node yet."""
    topic, context = _node(request, ws_id, node_id, Role.EDITOR)
    filters = PanelFilters(q=request.GET.get("q", ""))
    free = topics.linkable_memories(topic.workspace, request.user).exclude(nodes=topic)
    memories = filtered(free, filters).listed()[:FOUND] if filters else []
    return render(request, "memories/nodes/found.html", context | {"memories": memories, "filters": filters})


@require_POST
def link_memory(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    memory = topics.get_linkable_memory(topic, request.user, request.POST.get("memory", ""))
    topics.link_memory(topic, memory, now=timezone.now())
    notices.success(request, _("Linked to “%(name)s”.") % {"name": topic.name})
    return _to(topic, "#memories")


@require_POST
def unlink_memory(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    memory = topics.get_linkable_memory(topic, request.user, request.POST.get("memory", ""))
    topics.unlink_memory(topic, memory)
    notices.success(request, _("Unlinked. The memory itself stays."))
    return _to(topic, "#memories")


@require_POST
def relate(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Relate the node to another node of the workspace, given by its name."""
    topic, context = _node(request, ws_id, node_id, Role.EDITOR)
    form = RelationForm(request.POST)

    def add() -> tuple[NodeRelation, bool]:
        other = topics.named(topic.workspace, form.cleaned_data["other"], request.user)
        return topics.relate(topic, other, form.cleaned_data["relation"], now=timezone.now())

    if form.done(add):
        return _to(topic, "#relations")
    return _page(request, topic, context, relation_form=form)


@require_POST
def unrelate(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Remove a relation, given by ``source``, ``target`` and ``relation``, and redirect to the node's page."""
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    ends = (request.POST.get("source", ""), request.POST.get("target", ""))
    source, target = (topics.get_node(request.user, end, workspace=topic.workspace) for end in ends)
    topics.unrelate(source, target, request.POST.get("relation", ""))
    return _to(topic, "#relations")


@require_POST
def merge(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Merge the node into another node of the workspace, given by ``into``."""
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    into = topics.get_node(request.user, request.POST.get("into", ""), workspace=topic.workspace)
    topics.merge_topics(topic, into, now=timezone.now())
    message = _("“%(name)s” has been merged into “%(other)s”.")
    notices.success(request, message % {"name": topic.name, "other": into.name})
    return _to(into)


@require_POST
def differ(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Record that the node and ``other`` are different, so that merging them is not suggested again."""
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    other = topics.get_node(request.user, request.POST.get("other", ""), workspace=topic.workspace)
    topic.differs_from.add(other)
    return redirect("memories:nodes", topic.workspace.public_id)


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, ws_id: str, node_id: str) -> HttpResponse:
    """Delete the node on POST. On GET, as after a re-authentication, show the node's page."""
    topic, _context = _node(request, ws_id, node_id, Role.EDITOR)
    return _to(topic, "#danger") if request.method == "GET" else _delete(request, topic)


@confirmed()
def _delete(request: PageRequest, topic: MemoryNode) -> HttpResponse:
    topic.delete()
    message = _("The topic “%(name)s” has been deleted. Its memories stay.")
    notices.success(request, message % {"name": topic.name})
    return redirect("memories:nodes", topic.workspace.public_id)
