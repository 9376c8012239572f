from __future__ import annotations

from django.urls import path

from workspaces.accounts import leaving_views, security_views
from workspaces.agents import agent_views
from workspaces.connections import views as connections
from workspaces.documents import document_views
from workspaces.pages import review_views, short_term_choices, workspace_views

app_name = "workspaces"
urlpatterns = [
    path("workspaces/", workspace_views.workspace_list, name="list"),
    path("workspaces/<str:ws_id>/settings/", workspace_views.settings, name="settings"),
    path("workspaces/<str:ws_id>/activity/", security_views.activity, name="activity"),
    path("workspaces/<str:ws_id>/delete/", workspace_views.delete, name="delete"),
    path("workspaces/<str:ws_id>/members/", workspace_views.add_member, name="add_member"),
    path(
        "workspaces/<str:ws_id>/members/<str:user_id>/role/", workspace_views.change_role, name="change_role"
    ),
    path(
        "workspaces/<str:ws_id>/members/<str:user_id>/remove/",
        workspace_views.remove_member,
        name="remove_member",
    ),
    path("workspaces/<str:ws_id>/agents/", agent_views.agent_list, name="agents"),
    path("workspaces/<str:ws_id>/agents/<str:agent_id>/", agent_views.agent, name="agent"),
    path("workspaces/<str:ws_id>/agents/<str:agent_id>/archive/", agent_views.archive, name="archive_agent"),
    path("workspaces/<str:ws_id>/agents/<str:agent_id>/restore/", agent_views.restore, name="restore_agent"),
    path("workspaces/<str:ws_id>/documents/", document_views.document_list, name="documents"),
    path("workspaces/<str:ws_id>/documents/choices/", document_views.choices, name="document_choices"),
    path("workspaces/<str:ws_id>/documents/<str:doc_id>/", document_views.document, name="document"),
    path(
        "workspaces/<str:ws_id>/documents/<str:doc_id>/content/",
        document_views.content,
        name="document_content",
    ),
    path(
        "workspaces/<str:ws_id>/documents/<str:doc_id>/delete/", document_views.delete, name="delete_document"
    ),
    path(
        "workspaces/<str:ws_id>/documents/<str:doc_id>/restore/",
        document_views.restore,
        name="restore_document",
    ),
    path(
        "workspaces/<str:ws_id>/documents/<str:doc_id>/replace/",
        document_views.replace,
        name="replace_document",
    ),
    path(
        "workspaces/<str:ws_id>/documents/<str:doc_id>/forget/", document_views.forget, name="forget_document"
    ),
    path("workspaces/<str:ws_id>/documents/<str:doc_id>/retry/", document_views.retry, name="retry_document"),
    path("workspaces/<str:ws_id>/events/", workspace_views.events, name="events"),
    path("connections/", connections.connection_list, name="connections"),
    path("connections/<str:connection_id>/", connections.connection, name="connection"),
    path("connections/<str:connection_id>/delete/", connections.delete, name="delete_connection"),
    path("connections/<str:connection_id>/test/", connections.test, name="test_connection"),
    path("workspaces/<str:ws_id>/model/", connections.of_workspace, name="model"),
    path("workspaces/<str:ws_id>/local-only/", connections.local_only, name="local_only"),
    path("profile/", workspace_views.profile, name="profile"),
    path("profile/delete/", leaving_views.delete, name="delete_account"),
    path("profile/keys/", workspace_views.keys, name="keys"),
    path("profile/keys/<str:key_id>/revoke/", workspace_views.revoke_key, name="revoke_key"),
    path("profile/sessions/end-others/", security_views.end_other_sessions, name="end_other_sessions"),
    path("profile/sessions/<str:session_id>/end/", security_views.end_session, name="end_session"),
    path("profile/short-term/", short_term_choices.everywhere, name="short_term_everywhere"),
    path("workspaces/<str:ws_id>/reviews/", review_views.proposals, name="reviews"),
    path("workspaces/<str:ws_id>/short-term/", short_term_choices.private_chats, name="private_short_term"),
    path("profile/memory/", workspace_views.memory_default, name="memory_default"),
]
