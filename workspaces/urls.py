from __future__ import annotations

from django.urls import path

from workspaces.views import accounts, artifacts, documents, settings, workspaces
from workspaces.views import connections as connections
from workspaces.views import workspaces as invitations

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
    path("workspaces/", workspaces.workspace_list, name="list"),
    path(f"{WORKSPACE}settings/", workspaces.settings, name="settings"),
    path(f"{WORKSPACE}activity/", accounts.activity, name="activity"),
    path(f"{WORKSPACE}usage/", settings.workspace_usage, name="usage"),
    path(f"{WORKSPACE}retention/", settings.retention, name="retention"),
    path("profile/usage/", settings.own_usage, name="own_usage"),
    path(f"{WORKSPACE}delete/", workspaces.delete, name="delete"),
    path(f"{WORKSPACE}members/", workspaces.add_member, name="add_member"),
    path(f"{MEMBER}role/", workspaces.change_role, name="change_role"),
    path(f"{MEMBER}remove/", workspaces.remove_member, name="remove_member"),
    path(f"{WORKSPACE}invitations/", invitations.create, name="create_invitation"),
    path(f"{WORKSPACE}invitations/<str:invitation_id>/revoke/", invitations.revoke, name="revoke_invitation"),
    path("invitations/<str:invitation_id>/", invitations.answer, name="answer_invitation"),
    path("join/<str:token>/", invitations.invitation, name="invitation"),
    path("join/<str:token>/accept/", invitations.accept, name="accept_invitation"),
    path(f"{WORKSPACE}agents/", settings.agent_list, name="agents"),
    path(AGENT, settings.agent, name="agent"),
    path(f"{AGENT}archive/", settings.archive, name="archive_agent"),
    path(f"{AGENT}restore/", settings.restore, name="restore_agent"),
    path(f"{WORKSPACE}documents/", documents.document_list, name="documents"),
    path(f"{WORKSPACE}documents/choices/", documents.choices, name="document_choices"),
    path(DOCUMENT, documents.document, name="document"),
    path(f"{DOCUMENT}content/", documents.content, name="document_content"),
    path(f"{DOCUMENT}picture/", documents.picture, name="document_picture"),
    path(f"{DOCUMENT}delete/", documents.delete, name="delete_document"),
    path(f"{DOCUMENT}restore/", documents.restore, name="restore_document"),
    path(f"{DOCUMENT}replace/", documents.replace, name="replace_document"),
    path(f"{DOCUMENT}edit/", documents.edit, name="edit_document"),
    path(f"{DOCUMENT}back/<int:number>/", documents.back, name="document_back"),
    path(f"{DOCUMENT}whose/", documents.move, name="move_document"),
    path(f"{DOCUMENT}forget/", documents.forget, name="forget_document"),
    path(f"{DOCUMENT}retry/", documents.retry, name="retry_document"),
    path(ARTIFACTS, artifacts.artifact_list, name="artifacts"),
    path(ARTIFACT, artifacts.artifact, name="artifact"),
    path(f"{ARTIFACT}frame/", artifacts.frame, name="artifact_frame"),
    path(f"{ARTIFACT}download/", artifacts.download, name="download_artifact"),
    path(f"{ARTIFACT}versions/", artifacts.versions, name="artifact_versions"),
    path(f"{ARTIFACT}back/", artifacts.back, name="artifact_back"),
    path(f"{ARTIFACT}undo/", artifacts.undo, name="undo_artifact"),
    path(f"{ARTIFACT}delete/", artifacts.delete, name="delete_artifact"),
    path(f"{ARTIFACT}restore/", artifacts.restore, name="restore_artifact"),
    path(f"{ARTIFACT}whose/", artifacts.move, name="move_artifact"),
    path(f"{ARTIFACT}forget/", artifacts.forget, name="forget_artifact"),
    path(WEBHOOKS, settings.webhook_list, name="webhooks"),
    path(WEBHOOK, settings.webhook, name="webhook"),
    path(f"{WEBHOOK}rotate/", settings.rotate, name="rotate_webhook"),
    path(f"{WEBHOOK}enable/", settings.enable, name="enable_webhook"),
    path(f"{WEBHOOK}delete/", settings.delete, name="delete_webhook"),
    path(f"{WEBHOOK}deliveries/<str:delivery_id>/resend/", settings.resend, name="resend_delivery"),
    path(f"{WORKSPACE}events/", workspaces.events, name="events"),
    path("connections/", connections.connection_list, name="connections"),
    path("connections/built-in/", connections.larger_model, name="larger_model"),
    path("connections/here/", connections.find_here, name="find_here"),
    path("connections/here/connect/", connections.connect_here, name="connect_here"),
    path("connections/<str:connection_id>/", connections.connection, name="connection"),
    path("connections/<str:connection_id>/default/", connections.default, name="default_connection"),
    path("connections/<str:connection_id>/delete/", connections.delete, name="delete_connection"),
    path("connections/<str:connection_id>/test/", connections.test, name="test_connection"),
    path(f"{WORKSPACE}model/", settings.model, name="model"),
    path(f"{WORKSPACE}local-only/", settings.switch("local_only", "local_only"), name="local_only"),
    path("profile/", workspaces.profile, name="profile"),
    path("profile/delete/", accounts.delete, name="delete_account"),
    path("profile/keys/", workspaces.keys, name="keys"),
    path("profile/keys/<str:key_id>/revoke/", workspaces.revoke_key, name="revoke_key"),
    path("profile/sessions/end-others/", accounts.end_other_sessions, name="end_other_sessions"),
    path("profile/sessions/<str:session_id>/end/", accounts.end_session, name="end_session"),
    path("profile/picture/", accounts.change, name="own_picture"),
    path("people/<str:user_id>/picture/", accounts.picture, name="picture"),
    path("profile/name/", settings.name, name="name"),
    path("profile/language/", settings.language, name="language"),
    path("profile/short-term/", settings.short_term_everywhere, name="short_term_everywhere"),
    path(f"{WORKSPACE}share-links/", settings.switch("share_links", "links"), name="share_links"),
    path(f"{WORKSPACE}reviews/", settings.switch("reviews_proposals", "reviews"), name="reviews"),
    path(
        f"{WORKSPACE}short-term/",
        settings.switch("private_short_term", "private"),
        name="private_short_term",
    ),
    path("profile/memory/", workspaces.memory_default, name="memory_default"),
]
