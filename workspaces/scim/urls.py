from __future__ import annotations

from django.urls import path

from workspaces.scim import views

app_name = "scim"
urlpatterns = [
    path("Users", views.users, name="users"),
    path("Users/<str:user_id>", views.user, name="user"),
    path("Groups", views.many_groups, name="groups"),
    path("Groups/<str:group_id>", views.one_group, name="group"),
    path("ServiceProviderConfig", views.provider, name="provider"),
    path("ResourceTypes", views.resource_types, name="resource_types"),
    path("<path:anything>", views.nothing),
]
