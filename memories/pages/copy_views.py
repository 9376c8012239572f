"""Deciding in the memory panel about copies of what somebody else forgot for good."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memories.forgetting.forget import forget_noted, get_noted, keep_noted
from workspaces.access import get_workspace
from workspaces.accounts.sign_in import ask_for_password
from workspaces.models import Role
from workspaces.views import PageRequest


@require_POST
def forget(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """For good, so the password is asked for first; a page says what went."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_noted(request.user, mem_id, workspace=workspace)
    ask_for_password(request)
    report = forget_noted(memory, by=request.user, now=timezone.now())
    said = _("The copies are no longer in the database.")
    return render(request, "forgetting/done.html", {"workspace": workspace, "report": report, "said": said})


@require_POST
def keep(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    keep_noted(get_noted(request.user, mem_id, workspace=workspace))
    response = render(request, "memories/decided_toast.html", {"workspace": workspace, "outcome": "kept"})
    response["HX-Trigger"] = "memories:changed"
    return response
