"""How people get in: what allauth asks us."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ReauthenticationRequired
from django.conf import settings
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGNUP_OPEN


def typed_password_lately(request: HttpRequest) -> bool:
    """Whether this session's person has typed their password again in the last minutes, after signing in."""
    try:
        reauthentication_required(lambda request: None)(request)
    except ReauthenticationRequired:
        return False
    return True
