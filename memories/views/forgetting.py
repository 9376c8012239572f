"""Pages that forget memories permanently, clear a scope, and decide about copies of forgotten texts.

Each page first shows or counts what will be removed. Removing it permanently requires the password. Clearing shows its
progress and can be undone.
"""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memories.access import get_memory
from memories.forgetting import clear
from memories.forgetting.forget import forget_memories, forget_noted, get_noted, keep_noted, require_right
from workspaces.access import get_workspace
from workspaces.accounts.sign_in import ask_for_password
from workspaces.models import Agent, Role, Workspace
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Ask for confirmation on GET, forget the memory permanently on POST. The memory may be a deleted one."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_memory(request.user, mem_id, workspace=workspace, need=Role.EDITOR, include_deleted=True)
    require_right(memory, request.user)
    ask_for_password(request)
    context = {"workspace": workspace, "memory": memory}
    if request.method == "GET":
        return render(request, "memories/forget.html", context)
    report = forget_memories([memory], by=request.user, now=timezone.now())
    said = _("It is no longer in the database.") if report.removed["memories"] else _("It was gone already.")
    return render(request, "forgetting/done.html", context | {"report": report, "said": said})


Asked = tuple[Workspace, str, Agent | None]


def _asked(request: PageRequest, ws_id: str) -> Asked:
    """Return the scope that the query string names. Raises the errors of ``clear.scope_of``."""
    scope, agent_id = request.GET.get("scope", ""), request.GET.get("agent") or None
    workspace, agent = clear.scope_of(request.user, ws_id, scope, agent_id)
    return workspace, scope, agent


def _begin(request: PageRequest, asked: Asked, *, for_good: bool) -> HttpResponse:
    workspace, scope, agent = asked
    clear.begin(workspace, scope, agent, by=request.user, for_good=for_good, now=timezone.now())
    return redirect("memories:clear", workspace.public_id)


@require_http_methods(["GET", "POST"])
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """List the scopes that can be cleared, with ``part=list`` only the list. A POST clears one with Undo."""
    if request.method == "POST":
        return _begin(request, _asked(request, ws_id), for_good=False)
    workspace = get_workspace(request.user, ws_id)
    scopes = clear.clearable_by(request.user, workspace)
    at_work = any(each.last and each.last.is_at_work for each in scopes)
    part = request.GET.get("part") == "list"
    context = {"workspace": workspace, "scopes": scopes, "at_work": at_work}
    return render(request, "memories/clear/list.html" if part else "memories/clear/page.html", context)


@require_http_methods(["GET", "POST"])
def for_good(request: PageRequest, ws_id: str) -> HttpResponse:
    """Ask for confirmation on GET, clear the scope permanently on POST. Both require the password."""
    asked = _asked(request, ws_id)
    ask_for_password(request)
    if request.method == "POST":
        return _begin(request, asked, for_good=True)
    workspace, scope, agent = asked
    _live, whole = clear.count_in(workspace, scope, agent, by=request.user)
    back = reverse("memories:clear", args=[workspace.public_id])
    context = {"workspace": workspace, "scope": scope, "agent": agent, "count": whole, "back": back}
    return render(request, "memories/clear/for_good.html", context)


@require_POST
def undo(request: PageRequest, ws_id: str, clearing_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id)
    clear.undo(clear.get_clearing(request.user, workspace, clearing_id), by=request.user)
    return redirect("memories:clear", workspace.public_id)


@require_POST
def forget_copies(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Forget the copies permanently, after asking for the password, and show what was removed."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_noted(request.user, mem_id, workspace=workspace)
    ask_for_password(request)
    report = forget_noted(memory, by=request.user, now=timezone.now())
    said = _("The copies are no longer in the database.")
    return render(request, "forgetting/done.html", {"workspace": workspace, "report": report, "said": said})


@require_POST
def keep_copies(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    keep_noted(get_noted(request.user, mem_id, workspace=workspace))
    response = render(request, "memories/decided_toast.html", {"workspace": workspace, "outcome": "kept"})
    response["HX-Trigger"] = "memories:changed"
    return response
