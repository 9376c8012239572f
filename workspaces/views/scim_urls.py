"""URLs of SCIM, below ``/scim/v2/``."""

from __future__ import annotations

from django.urls import path

from workspaces.views import scim

app_name = "scim"
urlpatterns = [
    path("Users", scim.users, name="users"),
    path("Users/<str:user_id>", scim.user, name="user"),
    path("Groups", scim.many_groups, name="groups"),
    path("Groups/<str:group_id>", scim.one_group, name="group"),
    path("ServiceProviderConfig", scim.provider, name="provider"),
    path("ResourceTypes", scim.resource_types, name="resource_types"),
    path("<path:anything>", scim.nothing),
]
