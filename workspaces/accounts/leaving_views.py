"""The page on which a person deletes their account."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from workspaces.accounts.leaving import delete_account, foresee_leaving
from workspaces.accounts.sign_in import ask_for_password
from workspaces.actions.removal import lines_of
from workspaces.pages.page_request import PageRequest
from workspaces.pages.workspace_forms import DeleteForm


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest) -> HttpResponse:
    """GET says what goes and what stays, POST with the name typed does it and signs out everywhere."""
    ask_for_password(request)
    user = request.user
    form = DeleteForm(
        request.POST if request.method == "POST" else None, name=user.get_username(), what="account"
    )
    removed = form.done(lambda: delete_account(user))
    if removed is not None:
        request.session.flush()
        request.user = AnonymousUser()  # type: ignore[assignment]  # there is nobody any more
        return render(request, "workspaces/account_deleted.html", {"report": {"lines": lines_of(removed)}})
    context = {"form": form, "plan": foresee_leaving(user)}
    return render(request, "workspaces/delete_account.html", context, status=422 if form.errors else 200)
