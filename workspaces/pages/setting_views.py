"""Settings that are saved one by one: of a workspace by its owners, and a person's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.languages import speaking_to
from workspaces.access import get_workspace
from workspaces.accounts.names import set_name
from workspaces.actions import workspaces
from workspaces.models import Role
from workspaces.pages.page_request import PageRequest


def switch(setting: str, sent: str) -> Callable[..., HttpResponse]:
    """A view that turns ``setting`` of a workspace on or off, by the box ``sent`` of its form."""

    @require_POST
    def view(request: PageRequest, ws_id: str) -> HttpResponse:
        return _changed(request, ws_id, **{setting: request.POST.get(sent) == "on"})

    return view


@require_POST
def model(request: PageRequest, ws_id: str) -> HttpResponse:
    """Set the model of a workspace. Nothing changes if nothing was chosen."""
    changed = _changed(request, ws_id, connection_id=request.POST.get("connection"))
    return redirect("chat:workspace", ws_id) if request.POST.get("from") == "chat" else changed


@require_POST
def short_term_everywhere(request: PageRequest) -> HttpResponse:
    workspaces.set_short_term_everywhere(request.user, request.POST.get("everywhere") == "on")
    notices.success(request, _("Saved."))
    return redirect("workspaces:profile")


@require_POST
def name(request: PageRequest) -> HttpResponse:
    set_name(request.user, request.POST.get("name", ""))
    notices.success(request, _("Saved."))
    return redirect(reverse("workspaces:profile") + "#name")


@require_POST
def language(request: PageRequest) -> HttpResponse:
    """The page that follows is already in it."""
    workspaces.set_language(request.user, request.POST.get("language", ""))
    with speaking_to(request.user) if request.user.language else nullcontext():
        notices.success(request, _("Saved."))
    if request.htmx:  # all of the page is in another one now
        return HttpResponse(headers={"HX-Refresh": "true"})
    return redirect(reverse("workspaces:profile") + "#language")


def _changed(request: PageRequest, ws_id: str, **changes: Any) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    workspaces.update_workspace(workspace, by=request.user, **changes)
    notices.success(request, _("Saved."))
    return redirect("workspaces:settings", ws_id)
