"""The page on which a program is connected: a key, and the lines to paste."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from chat.doors.programs import NO_KEY, models, tools
from memories.consent import memory_on
from workspaces.access import default_workspace
from workspaces.accounts.keys import make_key
from workspaces.models import KeyScope
from workspaces.pages.page_request import PageRequest
from workspaces.pages.workspace_forms import KeyForm


@require_http_methods(["GET", "POST"])
@reauthentication_required(allow_get=True)
def connect(request: PageRequest) -> HttpResponse:
    """A new key stands in the answer to its form only: nothing may keep it, so there is no redirect."""
    now, new_key = timezone.now(), ""
    default_workspace(request.user)  # the one a key is most often for
    sent = request.POST if request.method == "POST" else None
    form = KeyForm(sent, user=request.user, now=now, initial={"scope": KeyScope.WRITE})
    made = form.done(lambda: make_key(**form.cleaned_data, by=request.user, now=now))
    new_key = made[1] if made else ""
    base = request.build_absolute_uri("/").rstrip("/")
    context = {
        "form": form,
        "new_key": new_key,
        "models": models(base, new_key or NO_KEY),
        "tools": tools(base, new_key or NO_KEY),
        "memory_is_on": memory_on(request.user, None),
    }
    return render(request, "chat/connect.html", context, status=422 if form.errors else 200)
