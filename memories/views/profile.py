"""The Profile tab of the Memory page."""

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memories.models import Scope
from memories.recalling.profile import hidden_lines, hide_line, profile_of
from memories.views.panel_context import MemoryForm, changed_notice, is_shared, workspace_context
from memories.writing import gate
from memoryhub.errors import Invalid
from workspaces.access import get_workspace
from workspaces.actions.workspaces import set_preference
from workspaces.data_policy import DataPolicy
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the profile, with ``part=lines`` only its list, or on POST add a memory, pinned so that it stays."""
    workspace, context = workspace_context(request, ws_id)
    now = timezone.now()
    form = MemoryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        draft = gate.Draft(
            **form.texts,
            workspace=workspace,
            author=request.user,
            scope=Scope.USER,
            pinned=True,
            confirmed=form.confirmed,
        )
        try:
            gate.save_memory(draft, by=request.user, now=now)
        except Invalid as error:
            form.add_domain_errors(error)
        else:
            notices.success(request, _("Added to your profile. Other members do not see it."))
            return redirect("memories:profile", ws_id)
    profile = profile_of(workspace, request.user, policy=DataPolicy.here(workspace), now=now)
    context |= {
        "is_shared": is_shared(workspace),
        "memories": [*profile.you, *profile.here],
        "sections": [
            ("about-you", _("About you"), profile.you),
            ("about-workspace", _("About this workspace"), profile.here),
        ],
        "hidden": hidden_lines(workspace, request.user, now),
        "form": form,
    }
    part = "lines" if request.GET.get("part") == "lines" else "page"
    status = 422 if form.errors or form.asks else 200
    return render(request, f"memories/profile/{part}.html", context, status=status)


@require_POST
def hide(request: PageRequest, ws_id: str) -> HttpResponse:
    """Hide a memory from the user's profile. With ``hidden=off``, which Undo sends, show it again."""
    params = request.GET if "memory" in request.GET else request.POST
    workspace = get_workspace(request.user, ws_id)
    hidden = params.get("hidden") != "off"
    memory = hide_line(params.get("memory", ""), workspace, request.user, hidden=hidden)
    undo = f"{reverse('memories:profile_hide', args=[ws_id])}?memory={memory.public_id}&hidden=off"
    if hidden:
        return changed_notice(
            request, workspace, _("Hidden from your profile. It is still remembered."), undo
        )
    return changed_notice(request, workspace, _("It is shown again."))


@require_POST
def use(request: PageRequest, ws_id: str) -> HttpResponse:
    """Set whether the user's chats, in all workspaces, use the profile. ``ws_id`` is the page to return to."""
    get_workspace(request.user, ws_id)
    set_preference(request.user, "profile_in_chats", request.POST.get("profile") == "on")
    notices.success(request, _("Saved."))
    return redirect("memories:profile", ws_id)
