"""URLs of OAuth: metadata, registration, authorization and tokens."""

from __future__ import annotations

from django.urls import path

from workspaces.views import oauth

app_name = "oauth"
urlpatterns = [
    path(".well-known/oauth-protected-resource", oauth.resource_metadata, name="resource"),
    path(".well-known/oauth-protected-resource/<path:resource>", oauth.resource_metadata, name="resource_of"),
    path(".well-known/oauth-authorization-server", oauth.server_metadata, name="server"),
    path("oauth/register", oauth.register, name="register"),
    path("oauth/authorize", oauth.authorize, name="authorize"),
    path("oauth/token", oauth.give_token, name="token"),
    path("oauth/revoke", oauth.revoke, name="revoke"),
]
