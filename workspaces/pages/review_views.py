"""An owner's choice whether what viewers or models propose waits for an editor."""

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
def proposals(request: PageRequest, ws_id: str) -> HttpResponse:
    found = get_workspace(request.user, ws_id, need=Role.OWNER)
    wanted = request.POST.get("reviews") == "on"
    workspaces.update_workspace(found, by=request.user, reviews_proposals=wanted)
    notices.success(request, _("Saved."))
    return redirect("workspaces:settings", ws_id)
