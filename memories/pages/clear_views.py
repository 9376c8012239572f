"""The pages on which a scope is cleared of its memories: counted before, with progress during and an undo after."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from memories.forgetting import clear
from workspaces.access import get_workspace
from workspaces.accounts.sign_in import ask_for_password
from workspaces.models import Agent, Workspace
from workspaces.views import PageRequest

Asked = tuple[Workspace, str, Agent | None]


def _asked(request: PageRequest, ws_id: str) -> Asked:
    """The scope that the address names. Raises Invalid, Forbidden or NotFound."""
    scope, agent_id = request.GET.get("scope", ""), request.GET.get("agent") or None
    workspace, agent = clear.scope_of(request.user, ws_id, scope, agent_id)
    return workspace, scope, agent


def _begin(request: PageRequest, asked: Asked, *, for_good: bool) -> HttpResponse:
    workspace, scope, agent = asked
    clear.begin(workspace, scope, agent, by=request.user, for_good=for_good, now=timezone.now())
    return redirect("memories:clear", workspace.public_id)


@require_http_methods(["GET", "POST"])
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """GET lists the scopes, with ``part=list`` without the page around them. POST clears one softly."""
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
    """GET asks, POST does it; both want the password once more."""
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
