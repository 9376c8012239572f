"""The larger built-in model on pages: how far its download has come, and an administrator's Pause and Remove."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memoryhub.errors import Forbidden, Invalid
from memoryhub.local.large_model import Status, Wanted, read_status, want
from workspaces.connections.actions import may_manage
from workspaces.pages.page_request import PageRequest


def larger_model_status() -> Status | None:
    """Return the last status of the fetching process; None if no larger model is fetched on this machine."""
    if not settings.EMBEDDED_MODEL or settings.BUILTIN_MODEL not in {"auto", "large"}:
        return None
    return read_status(settings.DATA_DIR)


@require_http_methods(["GET", "POST"])
def larger_model(request: PageRequest) -> HttpResponse:
    """GET: the line as a fragment. POST: ``want`` is pause, fetch or remove; administrators only."""
    if request.method == "POST":
        if not may_manage(request.user):
            raise Forbidden(_("Only administrators can do this."))
        try:
            want(settings.DATA_DIR, Wanted(request.POST.get("want", "")))
        except ValueError:
            raise Invalid(_("Choose one of the buttons.")) from None
        return redirect("workspaces:connections")
    context = {
        "larger_model": larger_model_status(),
        "with_buttons": request.GET.get("buttons") == "on",
        "may_manage": may_manage(request.user),
    }
    return render(request, "workspaces/larger_model.html", context)
