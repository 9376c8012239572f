"""Pages of webhooks, for owners.

A webhook's secret is shown only in the response to its form, without a redirect.
"""

from typing import Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.access import get_workspace
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.models import Role, Webhook
from workspaces.views import PageRequest
from workspaces.views.forms import WebhookForm
from workspaces.webhooks import hooks

SHOWN = 50  # deliveries


@require_http_methods(["GET", "POST"])
def webhook_list(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    _ask_again(request)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if hook_and_secret := form.done(lambda: hooks.create_webhook(workspace, **who, **form.values())):
        return _page(request, hook_and_secret[0], secret=hook_and_secret[1])
    context = {"workspace": workspace, "webhooks": hooks.webhooks_of(workspace), "form": form}
    return render(request, "workspaces/webhooks.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def webhook(request: PageRequest, ws_id: str, hook_id: str) -> HttpResponse:
    hook = hooks.get_webhook(request.user, ws_id, hook_id)
    _ask_again(request)
    form = WebhookForm(request.POST) if request.method == "POST" else WebhookForm.of(hook)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: hooks.update_webhook(hook, **who, **form.values())):
        notices.success(request, _("Saved."))
        return redirect("workspaces:webhook", ws_id, hook_id)
    return _page(request, hook, form)


@require_http_methods(["GET", "POST"])
def rotate(request: PageRequest, ws_id: str, hook_id: str) -> HttpResponse:
    """Change the secret. GET redirects to the webhook, because it follows a re-authentication."""
    hook = hooks.get_webhook(request.user, ws_id, hook_id)
    if request.method == "GET":
        return redirect("workspaces:webhook", ws_id, hook_id)
    ask_for_password(request)
    return _page(request, hook, secret=hooks.rotate_secret(hook, by=request.user, now=timezone.now()))


@require_http_methods(["GET", "POST"])
def enable(request: PageRequest, ws_id: str, hook_id: str) -> HttpResponse:
    """Turn a webhook on or off, as the pressed button says."""
    hook = hooks.get_webhook(request.user, ws_id, hook_id)
    if request.method == "POST":
        ask_for_password(request)
        on = request.POST.get("enabled") == "on"
        hooks.update_webhook(hook, by=request.user, now=timezone.now(), enabled=on)
        notices.success(request, _("The webhook is on.") if on else _("The webhook is off."))
    return redirect("workspaces:webhook", ws_id, hook_id)


@require_POST
def delete(request: PageRequest, ws_id: str, hook_id: str) -> HttpResponse:
    hook = hooks.get_webhook(request.user, ws_id, hook_id)
    hooks.delete_webhook(hook, by=request.user)
    notices.success(request, _("The webhook “%(name)s” has been deleted.") % {"name": hook.name})
    return redirect("workspaces:webhooks", ws_id)


@require_POST
def resend(request: PageRequest, ws_id: str, hook_id: str, delivery_id: str) -> HttpResponse:
    hook = hooks.get_webhook(request.user, ws_id, hook_id)
    hooks.send_again(hook, delivery_id, by=request.user, now=timezone.now())
    notices.success(request, _("It is being sent again. Load the page again to see what came of it."))
    return redirect("workspaces:webhook", ws_id, hook_id)


def _ask_again(request: PageRequest) -> None:
    """Require re-authentication for a POST, because it may change the URL to which the workspace's events are sent."""
    if request.method == "POST":
        ask_for_password(request)


def _page(
    request: PageRequest, hook: Webhook, form: WebhookForm | None = None, secret: str = ""
) -> HttpResponse:
    form = form or WebhookForm.of(hook)
    context = {
        "workspace": hook.workspace,
        "webhook": hook,
        "form": form,
        "secret": secret,
        "deliveries": hook.deliveries.all()[:SHOWN],
    }
    return render(request, "workspaces/webhook.html", context, status=422 if form.errors else 200)
