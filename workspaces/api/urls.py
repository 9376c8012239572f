"""URLs of the REST API below ``/chat/api/``: account, keys, workspaces and what they hold."""

from django.urls import path

from workspaces.api import account, artifacts, documents, model_connections, spending, webhooks, workspaces

ARTIFACTS = "workspaces/<ws_id:workspace_id>/artifacts"
ARTIFACT = f"{ARTIFACTS}/<art_id:artifact_id>"

AGENT = "agents/<agent_id:agent_id>"
CONNECTION = "connections/<conn_id:connection_id>"
WORKSPACE = "workspaces/<ws_id:workspace_id>"
DOCUMENT = "workspaces/<ws_id:workspace_id>/documents/<doc_id:document_id>"
WEBHOOK = f"{WORKSPACE}/webhooks/<hook_id:webhook_id>"

app_name = "workspaces_api"
urlpatterns = [
    path("account", account.Account.as_view(), name="account"),
    path("keys", account.KeyList.as_view(), name="keys"),
    path("keys/<key_id:key_id>", account.KeyDetail.as_view(), name="key"),
    path("workspaces", workspaces.WorkspaceList.as_view(), name="workspaces"),
    path(WORKSPACE, workspaces.WorkspaceDetail.as_view(), name="workspace"),
    path(f"{WORKSPACE}/members", workspaces.MemberList.as_view(), name="members"),
    path(f"{WORKSPACE}/members/accept", workspaces.MemberAccept.as_view(), name="accept_member"),
    path("invitations", workspaces.InvitationsOfMine.as_view(), name="my_invitations"),
    path(f"{WORKSPACE}/members/<usr_id:user_id>", workspaces.MemberDetail.as_view(), name="member"),
    path(f"{WORKSPACE}/agents", workspaces.AgentList.as_view(), name="agents"),
    path(AGENT, workspaces.AgentDetail.as_view(), name="agent"),
    path(f"{WORKSPACE}/documents", documents.DocumentList.as_view(), name="documents"),
    path(DOCUMENT, documents.DocumentDetail.as_view(), name="document"),
    path(f"{DOCUMENT}/content", documents.DocumentContent.as_view(), name="document_content"),
    path(f"{DOCUMENT}/restore", documents.DocumentRestore.as_view(), name="restore_document"),
    path(f"{DOCUMENT}/versions", documents.DocumentVersions.as_view(), name="document_versions"),
    path(f"{DOCUMENT}/forget", documents.DocumentForget.as_view(), name="document_forget"),
    path(ARTIFACTS, artifacts.ArtifactList.as_view(), name="artifacts"),
    path(ARTIFACT, artifacts.ArtifactDetail.as_view(), name="artifact"),
    path(f"{ARTIFACT}/versions", artifacts.ArtifactVersions.as_view(), name="artifact_versions"),
    path(f"{ARTIFACT}/restore", artifacts.ArtifactRestore.as_view(), name="restore_artifact"),
    path(f"{ARTIFACT}/forget", artifacts.ArtifactForget.as_view(), name="forget_artifact"),
    path("usage", spending.OwnUsage.as_view(), name="own_usage"),
    path(f"{WORKSPACE}/usage", spending.WorkspaceUsage.as_view(), name="usage"),
    path(f"{WORKSPACE}/budget", spending.WorkspaceBudget.as_view(), name="budget"),
    path(f"{WORKSPACE}/retention", workspaces.WorkspaceRetention.as_view(), name="retention"),
    path(f"{WORKSPACE}/retention/preview", workspaces.RetentionPreview.as_view(), name="retention_preview"),
    path(f"{WORKSPACE}/webhooks", webhooks.WebhookList.as_view(), name="webhooks"),
    path(WEBHOOK, webhooks.WebhookDetail.as_view(), name="webhook"),
    path(f"{WEBHOOK}/rotate", webhooks.WebhookSecret.as_view(), name="webhook_secret"),
    path(f"{WEBHOOK}/deliveries", webhooks.DeliveryList.as_view(), name="webhook_deliveries"),
    path(
        f"{WEBHOOK}/deliveries/<evt_id:delivery_id>/resend",
        webhooks.DeliveryResend.as_view(),
        name="webhook_resend",
    ),
    path("connections", model_connections.ConnectionList.as_view(), name="connections"),
    path(CONNECTION, model_connections.ConnectionDetail.as_view(), name="connection"),
    path(f"{CONNECTION}/test", model_connections.ConnectionTest.as_view(), name="test_connection"),
    path(f"{AGENT}/restore", workspaces.AgentRestore.as_view(), name="restore_agent"),
]
