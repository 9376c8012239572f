"""Parts of allauth's pages that depend on this installation."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from allauth.account.views import login, password_reset, signup
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from memoryhub import mail
from workspaces.models import User


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Sign in, or create the first account if there is none yet."""
    is_fresh = not request.user.is_authenticated and not User.objects.exists()
    if is_fresh and get_adapter(request).is_open_for_signup(request):
        request.is_fresh_installation = True  # type: ignore[attr-defined]
        return signup(request)
    return login(request)


@login_not_required
def reset_password(request: HttpRequest) -> HttpResponseBase:
    """Without mail no link is made that nobody could be sent: the page says whom to ask."""
    return (
        password_reset(request) if mail.is_set() else render(request, "account/password_reset_no_mail.html")
    )
