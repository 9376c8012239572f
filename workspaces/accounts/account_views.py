"""What of allauth's pages depends on this installation."""

from __future__ import annotations

from allauth.account.views import password_reset
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from memoryhub import mail


def reset_password(request: HttpRequest) -> HttpResponseBase:
    """Without mail no link is made that nobody could be sent: the page says whom to ask."""
    return (
        password_reset(request) if mail.is_set() else render(request, "account/password_reset_no_mail.html")
    )
