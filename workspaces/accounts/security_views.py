"""Pages about trust: ending one's sessions, and what was done in a workspace."""

from __future__ import annotations

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from workspaces import audit
from workspaces.access import get_workspace
from workspaces.accounts import sessions
from workspaces.models import Role
from workspaces.pages.page_request import PageRequest


@require_POST
def end_session(request: PageRequest, session_id: str) -> HttpResponse:
    """End one of your sessions. Ending this very one signs out."""
    ended = sessions.end_session(session_id, by=request.user)
    if ended.session_key == request.session.session_key:
        request.session.flush()
        return redirect("account_login")
    notices.success(request, _("That session is signed out."))
    return _to_sessions()


@require_POST
def end_other_sessions(request: PageRequest) -> HttpResponse:
    ended = sessions.end_other_sessions(request.user, keep=request.session.session_key, by=request.user)
    text = ngettext(
        "%(number)s other session was signed out.", "%(number)s other sessions were signed out.", ended
    )
    notices.success(request, text % {"number": ended})
    return _to_sessions()


@require_GET
def activity(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the activity of a workspace to its owners."""
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    page = audit.page_of(workspace, before=request.GET.get("before", ""))
    return render(request, "workspaces/activity.html", {"workspace": workspace, "page": page})


def _to_sessions() -> HttpResponse:
    return redirect(reverse("workspaces:profile") + "#sessions")
