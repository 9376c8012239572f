"""Template tags of the sign-in pages."""

from django import template
from django.http import HttpRequest
from django.urls import Resolver404, resolve
from django.utils.translation import gettext_lazy as _

from workspaces.accounts import sign_in, two_factor

register = template.Library()
register.simple_tag(sign_in.shows_passwords, name="passwords_are_asked_for")
register.filter("has_to_set_up_two_factor", two_factor.is_required_of)

CREATES_KEY = _("You are about to create an API key.")
CHANGES_SIGN_IN = _("You are about to change how you sign in.")
CHANGES_CONNECTION = _("You are about to change a connection that everyone here may use.")
CHANGES_WEBHOOK = _("You are about to change what a webhook sends, and where.")
REASONS = {
    "workspaces:keys": CREATES_KEY,
    "connect": CREATES_KEY,
    "oauth:authorize": _("You are about to give a program access to your memories."),
    "workspaces:delete_account": _("You are about to delete your account."),
    "workspaces:delete": _("You are about to delete a workspace."),
    "exchange:personal_copy": _("You are about to download everything kept about you."),
    "workspaces:rotate_webhook": _("You are about to change the secret of a webhook."),
    "workspaces:webhooks": CHANGES_WEBHOOK,
    "workspaces:webhook": CHANGES_WEBHOOK,
    "workspaces:enable_webhook": CHANGES_WEBHOOK,
    "workspaces:connection": CHANGES_CONNECTION,
    "workspaces:switch_connection": CHANGES_CONNECTION,
    "workspaces:delete_connection": CHANGES_CONNECTION,
    "chat:forget": _("You are about to forget a chat for good."),
    "memories:forget": _("You are about to forget a memory for good."),
    "memories:copies_forget": _("You are about to forget memories for good."),
    "memories:clear_for_good": _("You are about to forget memories for good."),
    "memories:asset_remove": _("You are about to remove a file of a memory for good."),
    "workspaces:forget_document": _("You are about to forget a document for good."),
    "workspaces:forget_artifact": _("You are about to forget an artifact for good."),
    "account_email": CHANGES_SIGN_IN,
    "account_change_password": CHANGES_SIGN_IN,
    "account_set_password": CHANGES_SIGN_IN,
    "mfa_activate_totp": CHANGES_SIGN_IN,
    "mfa_deactivate_totp": CHANGES_SIGN_IN,
    "mfa_generate_recovery_codes": CHANGES_SIGN_IN,
    "mfa_view_recovery_codes": CHANGES_SIGN_IN,
    "mfa_download_recovery_codes": CHANGES_SIGN_IN,
}


@register.simple_tag
def why_confirm(request: HttpRequest) -> str:
    """Return what the page in ``?next=`` does that needs re-authentication, or "" for other pages."""
    try:
        name = resolve((request.POST.get("next") or request.GET.get("next", "")).partition("?")[0]).view_name
    except Resolver404:
        return ""
    return str(REASONS.get(name, ""))
