"""The two choices about short-term memory: a person's own, and an owner's for their workspace."""

from __future__ import annotations

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from workspaces.access import get_workspace
from workspaces.actions import workspaces
from workspaces.models import Role
from workspaces.pages.page_request import PageRequest


@require_POST
def everywhere(request: PageRequest) -> HttpResponse:
    workspaces.set_short_term_everywhere(request.user, request.POST.get("everywhere") == "on")
    notices.success(request, _("Saved."))
    return redirect("workspaces:profile")


@require_POST
def private_chats(request: PageRequest, ws_id: str) -> HttpResponse:
    found = get_workspace(request.user, ws_id, need=Role.OWNER)
    allowed = request.POST.get("private") == "on"
    workspaces.update_workspace(found, by=request.user, private_short_term=allowed)
    notices.success(request, _("Saved."))
    return redirect("workspaces:settings", ws_id)
