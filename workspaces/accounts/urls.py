"""What takes the place of allauth's own pages. The others are allauth's, mounted behind these."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from allauth.account.views import password_change
from django.urls import path

from workspaces.accounts.account_views import reset_password
from workspaces.accounts.sign_in import has_two_factor

urlpatterns = [
    # It asks for the old password itself; with two-factor sign-in on, for a code before.
    path("password/change/", reauthentication_required(enabled=has_two_factor)(password_change)),
    path("password/reset/", reset_password),
]
