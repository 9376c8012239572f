"""``/chat/api/workspaces…``"""

from __future__ import annotations

from django.urls import path

import memoryhub.api.ids  # noqa: F401  registers the path converters
from workspaces.api import views

app_name = "workspaces_api"
urlpatterns = [
    path("workspaces", views.WorkspaceList.as_view(), name="workspaces"),
    path("workspaces/<ws_id:workspace_id>", views.WorkspaceDetail.as_view(), name="workspace"),
    path("workspaces/<ws_id:workspace_id>/members", views.MemberList.as_view(), name="members"),
    path(
        "workspaces/<ws_id:workspace_id>/members/<usr_id:user_id>",
        views.MemberDetail.as_view(),
        name="member",
    ),
]
