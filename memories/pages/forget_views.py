"""The pages on which a memory is forgotten for good: what will go, the password once more, and what went."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memories.access import get_memory
from memories.forgetting.forget import forget_memories, require_right
from workspaces.access import get_workspace
from workspaces.accounts.sign_in import ask_for_password
from workspaces.models import Role
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """GET asks, POST does it. Of a deleted memory, too: that is where “Undo” ends."""
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
