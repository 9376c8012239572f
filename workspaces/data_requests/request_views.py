"""The page on which a person asks for a copy of the data kept about them, or for its deletion."""

from __future__ import annotations

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.errors import Invalid
from workspaces.accounts.sign_in import ask_for_password
from workspaces.data_requests import requests
from workspaces.models import RequestKind
from workspaces.pages.page_request import PageRequest


@require_http_methods(["GET", "POST"])
def data_requests(request: PageRequest) -> HttpResponse:
    """POST: ask for a ``kind``."""
    ask_for_password(request)
    now = timezone.now()
    if request.method == "POST":
        if request.POST.get("kind") not in RequestKind.values:
            raise Invalid(fields={"kind": _("Choose one of these.")})
        requests.ask(request.user, RequestKind(request.POST["kind"]), now=now)
        notices.success(request, _("Your request has been received."))
        return redirect("workspaces:data_requests")
    asked = requests.requests_of(request.user)
    for each in asked:
        each.fetchable = each.is_ready(now)  # type: ignore[attr-defined]
    context = {"asked": asked, "are_taken": requests.are_taken()}
    return render(request, "workspaces/data_requests.html", context)


@require_POST
def withdraw(request: PageRequest, request_id: str) -> HttpResponse:
    requests.withdraw(requests.get_request(request.user, request_id), by=request.user, now=timezone.now())
    notices.success(request, _("Your request has been withdrawn."))
    return redirect("workspaces:data_requests")
