"""URLs of workspaces' pages, of accounts, of OAuth and of SCIM."""

from allauth.account.decorators import reauthentication_required
from allauth.account.views import email, password_change, password_set
from allauth.mfa.totp.views import activate_totp
from django.urls import include, path

from workspaces.accounts.reauthentication import has_two_factor, recent_sign_in_required
from workspaces.accounts.single_sign_on import OPEN_TO_ALL, begin, come_back
from workspaces.views import (
    accounts,
    agents,
    artifacts,
    documents,
    event_streams,
    invitations,
    model_connections,
    oauth,
    scim,
    settings,
    webhooks,
    workspaces,
)

WORKSPACE = "workspaces/<str:ws_id>/"
MEMBER = "workspaces/<str:ws_id>/members/<str:user_id>/"
AGENT = "workspaces/<str:ws_id>/agents/<str:agent_id>/"
DOCUMENT = "workspaces/<str:ws_id>/documents/<str:doc_id>/"

ARTIFACTS = "workspaces/<str:ws_id>/artifacts/"
ARTIFACT = f"{ARTIFACTS}<str:art_id>/"
WEBHOOKS = "workspaces/<str:ws_id>/webhooks/"
WEBHOOK = f"{WEBHOOKS}<str:hook_id>/"

workspace_patterns = [
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
    path(f"{WORKSPACE}agents/", agents.agent_list, name="agents"),
    path(AGENT, agents.agent, name="agent"),
    path(f"{AGENT}archive/", agents.archive, name="archive_agent"),
    path(f"{AGENT}restore/", agents.restore, name="restore_agent"),
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
    path(WEBHOOKS, webhooks.webhook_list, name="webhooks"),
    path(WEBHOOK, webhooks.webhook, name="webhook"),
    path(f"{WEBHOOK}rotate/", webhooks.rotate, name="rotate_webhook"),
    path(f"{WEBHOOK}enable/", webhooks.enable, name="enable_webhook"),
    path(f"{WEBHOOK}delete/", webhooks.delete, name="delete_webhook"),
    path(f"{WEBHOOK}deliveries/<str:delivery_id>/resend/", webhooks.resend, name="resend_delivery"),
    path(f"{WORKSPACE}events/", event_streams.events, name="events"),
    path("connections/", model_connections.connection_list, name="connections"),
    path("connections/built-in/", model_connections.larger_model, name="larger_model"),
    path("connections/here/", model_connections.find_here, name="find_here"),
    path("connections/here/connect/", model_connections.connect_here, name="connect_here"),
    path("connections/<str:connection_id>/", model_connections.connection, name="connection"),
    path("connections/<str:connection_id>/switch/", model_connections.switch, name="switch_connection"),
    path("connections/<str:connection_id>/delete/", model_connections.delete, name="delete_connection"),
    path("connections/<str:connection_id>/test/", model_connections.test, name="test_connection"),
    path(f"{WORKSPACE}model/", settings.model, name="model"),
    path(f"{WORKSPACE}local-only/", settings.switch("local_only", "local_only"), name="local_only"),
    path("profile/", accounts.profile, name="profile"),
    path("profile/delete/", accounts.delete, name="delete_account"),
    path("profile/keys/", accounts.keys, name="keys"),
    path("profile/keys/<str:key_id>/revoke/", accounts.revoke_key, name="revoke_key"),
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
    path("profile/memory/", accounts.memory_default, name="memory_default"),
]
oauth_patterns = [
    path(".well-known/oauth-protected-resource", oauth.resource_metadata, name="resource"),
    path(".well-known/oauth-protected-resource/<path:resource>", oauth.resource_metadata, name="resource_of"),
    path(".well-known/oauth-authorization-server", oauth.server_metadata, name="server"),
    path("oauth/register", oauth.register, name="register"),
    path("oauth/authorize", oauth.authorize, name="authorize"),
    path("oauth/token", oauth.give_token, name="token"),
    path("oauth/revoke", oauth.revoke, name="revoke"),
]
scim_patterns = [
    path("Users", scim.users, name="users"),
    path("Users/<str:user_id>", scim.user, name="user"),
    path("Groups", scim.many_groups, name="groups"),
    path("Groups/<str:group_id>", scim.one_group, name="group"),
    path("ServiceProviderConfig", scim.provider, name="provider"),
    path("ResourceTypes", scim.resource_types, name="resource_types"),
    path("<path:anything>", scim.nothing),
]
# These replace pages of allauth, whose URLs are included after these.
account_patterns = [
    path("login/", accounts.sign_in, name="account_login"),
    # It requires the current password itself; with two-factor sign-in on, a code first.
    path(
        "password/change/",
        reauthentication_required(enabled=has_two_factor)(password_change),
        name="account_change_password",
    ),
    path("password/reset/", accounts.reset_password, name="account_reset_password"),
    path("password/set/", recent_sign_in_required(password_set), name="account_set_password"),
    path("email/", recent_sign_in_required(email), name="account_email"),
    path("two-factor/totp/activate/", recent_sign_in_required(activate_totp), name="mfa_activate_totp"),
    path("single-sign-on/", include("allauth.socialaccount.urls")),
    path("single-sign-on/with/<slug:provider_id>/", begin, name="openid_connect_login"),
    path("single-sign-on/with/<slug:provider_id>/callback/", come_back, name="openid_connect_callback"),
    # The same URLs again, under the names that allauth uses.
    *(
        path(f"single-sign-on/with/{name}/", begin, {"provider_id": name}, f"{name}_login")
        for name in OPEN_TO_ALL
    ),
    *(
        path(f"single-sign-on/with/{name}/callback/", come_back, {"provider_id": name}, f"{name}_callback")
        for name in OPEN_TO_ALL
    ),
]
urlpatterns = [
    path("", include((workspace_patterns, "workspaces"))),
    path("", include((oauth_patterns, "oauth"))),
    path("accounts/", include(account_patterns)),
    path("scim/v2/", include((scim_patterns, "scim"))),
]
