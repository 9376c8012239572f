"""URLs that replace allauth's own pages. The others are allauth's, mounted behind these."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from allauth.account.views import email, password_change, password_set
from allauth.mfa.totp.views import activate_totp
from django.urls import include, path

from workspaces.accounts.sign_in import has_two_factor, proven_first
from workspaces.accounts.single_sign_on import OPEN_TO_ALL, begin, come_back
from workspaces.views.accounts import reset_password, sign_in

urlpatterns = [
    path("login/", sign_in, name="account_login"),
    # It requires the current password itself; with two-factor sign-in on, a code first.
    path("password/change/", reauthentication_required(enabled=has_two_factor)(password_change)),
    path("password/reset/", reset_password),
    path("password/set/", proven_first(password_set)),
    path("email/", proven_first(email)),
    path("two-factor/totp/activate/", proven_first(activate_totp)),
    path("single-sign-on/", include("allauth.socialaccount.urls")),
    path("single-sign-on/with/<slug:provider_id>/", begin, name="openid_connect_login"),
    path("single-sign-on/with/<slug:provider_id>/callback/", come_back, name="openid_connect_callback"),
    # The same URLs again, under the names that allauth uses.
    *(
        path(f"single-sign-on/with/{name}/", begin, {"provider_id": name}, f"{name}_login")
        for name in OPEN_TO_ALL
    ),
    *(
        path(f"single-sign-on/with/{name}/callback/", come_back, {"provider_id": name}, f"{name}_callback")
        for name in OPEN_TO_ALL
    ),
]
