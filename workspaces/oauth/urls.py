"""Signing in by OAuth: for programs, and the page of consent."""

from __future__ import annotations

from django.urls import path

from workspaces.oauth import consent_views, views

app_name = "oauth"
urlpatterns = [
    path(".well-known/oauth-protected-resource", views.resource_metadata, name="resource"),
    path(".well-known/oauth-protected-resource/<path:resource>", views.resource_metadata, name="resource_of"),
    path(".well-known/oauth-authorization-server", views.server_metadata, name="server"),
    path("oauth/register", views.register, name="register"),
    path("oauth/authorize", consent_views.authorize, name="authorize"),
    path("oauth/token", views.give_token, name="token"),
    path("oauth/revoke", views.revoke, name="revoke"),
]
