"""``/chat/api/workspaces…``"""

from __future__ import annotations

from django.urls import path

import workspaces.rest.ids  # noqa: F401  registers the path converters
from workspaces.api import account, agents, connections, documents, keys, views

app_name = "workspaces_api"
urlpatterns = [
    path("account", account.Account.as_view(), name="account"),
    path("keys", keys.KeyList.as_view(), name="keys"),
    path("keys/<key_id:key_id>", keys.KeyDetail.as_view(), name="key"),
    path("workspaces", views.WorkspaceList.as_view(), name="workspaces"),
    path("workspaces/<ws_id:workspace_id>", views.WorkspaceDetail.as_view(), name="workspace"),
    path("workspaces/<ws_id:workspace_id>/members", views.MemberList.as_view(), name="members"),
    path(
        "workspaces/<ws_id:workspace_id>/members/<usr_id:user_id>",
        views.MemberDetail.as_view(),
        name="member",
    ),
    path("workspaces/<ws_id:workspace_id>/agents", agents.AgentList.as_view(), name="agents"),
    path("agents/<agent_id:agent_id>", agents.AgentDetail.as_view(), name="agent"),
    path("workspaces/<ws_id:workspace_id>/documents", documents.DocumentList.as_view(), name="documents"),
    path(
        "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>",
        documents.DocumentDetail.as_view(),
        name="document",
    ),
    path(
        "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>/content",
        documents.DocumentContent.as_view(),
        name="document_content",
    ),
    path(
        "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>/restore",
        documents.DocumentRestore.as_view(),
        name="restore_document",
    ),
    path(
        "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>/versions",
        documents.DocumentVersions.as_view(),
        name="document_versions",
    ),
    path(
        "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>/forget",
        documents.DocumentForget.as_view(),
        name="document_forget",
    ),
    path("connections", connections.ConnectionList.as_view(), name="connections"),
    path("connections/<conn_id:connection_id>", connections.ConnectionDetail.as_view(), name="connection"),
    path(
        "connections/<conn_id:connection_id>/test",
        connections.ConnectionTest.as_view(),
        name="test_connection",
    ),
    path("agents/<agent_id:agent_id>/restore", agents.AgentRestore.as_view(), name="restore_agent"),
]
