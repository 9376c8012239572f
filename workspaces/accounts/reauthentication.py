"""Re-authentication: a recent sign-in, required by pages that change or remove something permanently."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from allauth.mfa.utils import is_mfa_enabled
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden
from workspaces.audit import Verb, record
from workspaces.models import User

View = Callable[..., HttpResponse]
BY_CODE = "mfa_reauthenticate"


def record_failed_reauthentication(user: User, *, method: str) -> None:
    """Record a failed re-authentication of a signed-in user in the audit log."""
    record(Verb.REAUTHENTICATION_FAILED, by=user, details={"method": method})


def has_two_factor(request: HttpRequest) -> bool:
    return is_mfa_enabled(request.user)


def reauthenticated_recently(request: HttpRequest) -> bool:
    """Return whether the user has signed in or re-authenticated within ACCOUNT_REAUTHENTICATION_TIMEOUT.

    For users with two-factor sign-in, only a code counts. For users with a password, single sign-on does not count,
    because the provider may not have asked for a password.
    """
    ways = {method["id"] for method in get_adapter(request).get_reauthentication_methods(request.user)}
    counted = {"mfa"} if BY_CODE in ways else {"password", "mfa"}
    records = get_authentication_records(request, request.user)
    times = [record["at"] for record in records if not ways or record["method"] in counted]
    return bool(times) and time.time() - times[-1] < app_settings.REAUTHENTICATION_TIMEOUT


def ask_for_password(request: HttpRequest) -> None:
    """Require that the user has signed in or re-authenticated recently. For pages that remove something permanently.

    Else raises ReauthenticationRequired, which allauth turns into a redirect. Users who can only sign in by single
    sign-on have no way to re-authenticate: for them it raises ImmediateHttpResponse, with a page on which they sign in
    again.
    """
    if reauthenticated_recently(request):
        return
    if get_adapter(request).get_reauthentication_methods(request.user):
        raise ReauthenticationRequired
    raise ImmediateHttpResponse(render(request, "socialaccount/again.html", status=403))


def recent_sign_in_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Require sign-in and recent re-authentication. For allauth's pages that change how a user signs in."""

    @wraps(view)
    def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        ask_for_password(request)
        return view(request, *args, **kwargs)

    return login_required(asking)


def confirmed(*, allow_get: bool = False) -> Callable[[View], View]:
    """Return a decorator that requires a recent sign-in or re-authentication before a view is called.

    With ``allow_get``, GET requests need neither. Users who can only sign in by single sign-on have no way to
    re-authenticate, so they need neither, too.
    """

    def decorated(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            asks = not (allow_get and request.method == "GET") and not reauthenticated_recently(request)
            if asks and get_adapter(request).get_reauthentication_methods(request.user):
                raise ReauthenticationRequired
            return view(request, *args, **kwargs)

        return asking

    return decorated


def require_fresh_password(request: HttpRequest) -> None:
    """Raise Forbidden with the code ``reauthenticate`` unless the user re-authenticated recently.

    For the REST API, which cannot redirect.
    """
    if reauthenticated_recently(request):
        return
    text = _("This needs a fresh sign-in. Sign out and in again, then send this again.")
    if get_adapter(request).get_reauthentication_methods(request.user):
        text = _(
            "This needs your password once more. Enter it at /accounts/reauthenticate/, then send this again."
        )
    raise Forbidden(text, code="reauthenticate")
