"""Pages of a workspace's assistants."""

from typing import Any

from django.contrib import messages as notices
from django.db.models.functions import Lower
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.access import get_workspace
from workspaces.actions import workspaces
from workspaces.models import Agent, Role, Workspace
from workspaces.views import PageRequest, reload_or_redirect
from workspaces.views.forms import AgentForm

ARCHIVED_SHOWN = 50


def _can_write(role: str) -> bool:
    return Role(role).allows(Role.EDITOR)


def _agent(
    request: PageRequest, ws_id: str, agent_id: str, need: Role = Role.VIEWER
) -> tuple[Workspace, Agent]:
    workspace = get_workspace(request.user, ws_id, need=need)
    return workspace, workspaces.get_agent(request.user, agent_id, workspace=workspace)


@require_http_methods(["GET", "POST"])
def agent_list(request: PageRequest, ws_id: str) -> HttpResponse:
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace = get_workspace(request.user, ws_id, need=need)
    form = AgentForm(request.POST if request.method == "POST" else None)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if assistant := form.done(lambda: workspaces.create_agent(workspace, **form.cleaned_data, **who)):
        notices.success(request, _("“%(name)s” is ready to chat.") % {"name": assistant.name})
        return redirect("workspaces:agents", ws_id)
    by_name = workspace.agents.order_by(Lower("name"), "pk").defer("instructions")
    context: dict[str, Any] = {
        "workspace": workspace,
        "can_write": _can_write(workspace.role),
        "agents": by_name.in_use(),
        "archived": by_name.filter(archived_at__isnull=False)[:ARCHIVED_SHOWN],
        "form": form,
    }
    return render(request, "workspaces/agents.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def agent(request: PageRequest, ws_id: str, agent_id: str) -> HttpResponse:
    """Show an assistant and its instructions, which editors can change."""
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace, assistant = _agent(request, ws_id, agent_id, need)
    form = AgentForm(request.POST) if request.method == "POST" else AgentForm.of(assistant)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: workspaces.update_agent(assistant, **form.cleaned_data, **who)):
        notices.success(request, _("Saved. Chats with it follow this from their next answer on."))
        return redirect("workspaces:agents", ws_id)
    if form.errors:
        assistant.refresh_from_db()
    context = {
        "workspace": workspace,
        "can_write": _can_write(assistant.role),
        "agent": assistant,
        "form": form,
    }
    return render(request, "workspaces/agent.html", context, status=422 if form.errors else 200)


@require_POST
def archive(request: PageRequest, ws_id: str, agent_id: str) -> HttpResponse:
    _workspace, assistant = _agent(request, ws_id, agent_id, Role.EDITOR)
    workspaces.archive_agent(assistant, by=request.user, now=timezone.now())
    text = _("“%(name)s” is archived. Its chats and memories stay.") % {"name": assistant.name}
    undo_url = reverse("workspaces:restore_agent", args=[ws_id, agent_id])
    notices.success(request, text, extra_tags=undo_url)
    return redirect("workspaces:agents", ws_id)


@require_POST
def restore(request: PageRequest, ws_id: str, agent_id: str) -> HttpResponse:
    _workspace, assistant = _agent(request, ws_id, agent_id, Role.EDITOR)
    workspaces.restore_agent(assistant, by=request.user, now=timezone.now())
    if not request.htmx:
        notices.success(request, _("“%(name)s” has been restored.") % {"name": assistant.name})
    return reload_or_redirect(request, "workspaces:agents", ws_id)
