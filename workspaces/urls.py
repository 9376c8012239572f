from __future__ import annotations

from django.urls import path

from workspaces.accounts import leaving_views, picture_views, security_views
from workspaces.agents import agent_views
from workspaces.artifacts import artifact_views
from workspaces.connections import connection_views as connections
from workspaces.documents import document_views
from workspaces.invitations import invitation_views as invitations
from workspaces.pages import larger_model_views, setting_views, workspace_views
from workspaces.retention import retention_views
from workspaces.spending import usage_views
from workspaces.webhooks import webhook_views

WORKSPACE = "workspaces/<str:ws_id>/"
MEMBER = "workspaces/<str:ws_id>/members/<str:user_id>/"
AGENT = "workspaces/<str:ws_id>/agents/<str:agent_id>/"
DOCUMENT = "workspaces/<str:ws_id>/documents/<str:doc_id>/"

ARTIFACTS = "workspaces/<str:ws_id>/artifacts/"
ARTIFACT = f"{ARTIFACTS}<str:art_id>/"
WEBHOOKS = "workspaces/<str:ws_id>/webhooks/"
WEBHOOK = f"{WEBHOOKS}<str:hook_id>/"

app_name = "workspaces"
urlpatterns = [
    path("workspaces/", workspace_views.workspace_list, name="list"),
    path(f"{WORKSPACE}settings/", workspace_views.settings, name="settings"),
    path(f"{WORKSPACE}activity/", security_views.activity, name="activity"),
    path(f"{WORKSPACE}usage/", usage_views.workspace_usage, name="usage"),
    path(f"{WORKSPACE}retention/", retention_views.retention, name="retention"),
    path("profile/usage/", usage_views.own_usage, name="own_usage"),
    path(f"{WORKSPACE}delete/", workspace_views.delete, name="delete"),
    path(f"{WORKSPACE}members/", workspace_views.add_member, name="add_member"),
    path(f"{MEMBER}role/", workspace_views.change_role, name="change_role"),
    path(f"{MEMBER}remove/", workspace_views.remove_member, name="remove_member"),
    path(f"{WORKSPACE}invitations/", invitations.create, name="create_invitation"),
    path(f"{WORKSPACE}invitations/<str:invitation_id>/revoke/", invitations.revoke, name="revoke_invitation"),
    path("invitations/<str:invitation_id>/", invitations.answer, name="answer_invitation"),
    path("join/<str:token>/", invitations.invitation, name="invitation"),
    path("join/<str:token>/accept/", invitations.accept, name="accept_invitation"),
    path(f"{WORKSPACE}agents/", agent_views.agent_list, name="agents"),
    path(AGENT, agent_views.agent, name="agent"),
    path(f"{AGENT}archive/", agent_views.archive, name="archive_agent"),
    path(f"{AGENT}restore/", agent_views.restore, name="restore_agent"),
    path(f"{WORKSPACE}documents/", document_views.document_list, name="documents"),
    path(f"{WORKSPACE}documents/choices/", document_views.choices, name="document_choices"),
    path(DOCUMENT, document_views.document, name="document"),
    path(f"{DOCUMENT}content/", document_views.content, name="document_content"),
    path(f"{DOCUMENT}picture/", document_views.picture, name="document_picture"),
    path(f"{DOCUMENT}delete/", document_views.delete, name="delete_document"),
    path(f"{DOCUMENT}restore/", document_views.restore, name="restore_document"),
    path(f"{DOCUMENT}replace/", document_views.replace, name="replace_document"),
    path(f"{DOCUMENT}edit/", document_views.edit, name="edit_document"),
    path(f"{DOCUMENT}back/<int:number>/", document_views.back, name="document_back"),
    path(f"{DOCUMENT}whose/", document_views.move, name="move_document"),
    path(f"{DOCUMENT}forget/", document_views.forget, name="forget_document"),
    path(f"{DOCUMENT}retry/", document_views.retry, name="retry_document"),
    path(ARTIFACTS, artifact_views.artifact_list, name="artifacts"),
    path(ARTIFACT, artifact_views.artifact, name="artifact"),
    path(f"{ARTIFACT}frame/", artifact_views.frame, name="artifact_frame"),
    path(f"{ARTIFACT}download/", artifact_views.download, name="download_artifact"),
    path(f"{ARTIFACT}versions/", artifact_views.versions, name="artifact_versions"),
    path(f"{ARTIFACT}back/", artifact_views.back, name="artifact_back"),
    path(f"{ARTIFACT}undo/", artifact_views.undo, name="undo_artifact"),
    path(f"{ARTIFACT}delete/", artifact_views.delete, name="delete_artifact"),
    path(f"{ARTIFACT}restore/", artifact_views.restore, name="restore_artifact"),
    path(f"{ARTIFACT}whose/", artifact_views.move, name="move_artifact"),
    path(f"{ARTIFACT}forget/", artifact_views.forget, name="forget_artifact"),
    path(WEBHOOKS, webhook_views.webhook_list, name="webhooks"),
    path(WEBHOOK, webhook_views.webhook, name="webhook"),
    path(f"{WEBHOOK}rotate/", webhook_views.rotate, name="rotate_webhook"),
    path(f"{WEBHOOK}enable/", webhook_views.enable, name="enable_webhook"),
    path(f"{WEBHOOK}delete/", webhook_views.delete, name="delete_webhook"),
    path(f"{WEBHOOK}deliveries/<str:delivery_id>/resend/", webhook_views.resend, name="resend_delivery"),
    path(f"{WORKSPACE}events/", workspace_views.events, name="events"),
    path("connections/", connections.connection_list, name="connections"),
    path("connections/built-in/", larger_model_views.larger_model, name="larger_model"),
    path("connections/here/", connections.find_here, name="find_here"),
    path("connections/here/connect/", connections.connect_here, name="connect_here"),
    path("connections/<str:connection_id>/", connections.connection, name="connection"),
    path("connections/<str:connection_id>/default/", connections.default, name="default_connection"),
    path("connections/<str:connection_id>/delete/", connections.delete, name="delete_connection"),
    path("connections/<str:connection_id>/test/", connections.test, name="test_connection"),
    path(f"{WORKSPACE}model/", setting_views.model, name="model"),
    path(f"{WORKSPACE}local-only/", setting_views.switch("local_only", "local_only"), name="local_only"),
    path("profile/", workspace_views.profile, name="profile"),
    path("profile/delete/", leaving_views.delete, name="delete_account"),
    path("profile/keys/", workspace_views.keys, name="keys"),
    path("profile/keys/<str:key_id>/revoke/", workspace_views.revoke_key, name="revoke_key"),
    path("profile/sessions/end-others/", security_views.end_other_sessions, name="end_other_sessions"),
    path("profile/sessions/<str:session_id>/end/", security_views.end_session, name="end_session"),
    path("profile/picture/", picture_views.change, name="own_picture"),
    path("people/<str:user_id>/picture/", picture_views.picture, name="picture"),
    path("profile/name/", setting_views.name, name="name"),
    path("profile/language/", setting_views.language, name="language"),
    path("profile/short-term/", setting_views.short_term_everywhere, name="short_term_everywhere"),
    path(f"{WORKSPACE}share-links/", setting_views.switch("share_links", "links"), name="share_links"),
    path(f"{WORKSPACE}reviews/", setting_views.switch("reviews_proposals", "reviews"), name="reviews"),
    path(
        f"{WORKSPACE}short-term/",
        setting_views.switch("private_short_term", "private"),
        name="private_short_term",
    ),
    path("profile/memory/", workspace_views.memory_default, name="memory_default"),
]
