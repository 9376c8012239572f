"""Webhooks: create, change and delete them, and resend deliveries (owners only); sign deliveries; queue events."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memoryhub.database.queries import PreparedQuery
from memoryhub.encryption import seal, unseal
from memoryhub.errors import Conflict, Invalid, NotFound
from memoryhub.llm.addresses import CONTROL, is_internal, wrong_shape
from memoryhub.stored_messages import kept
from workspaces.access import get_workspace
from workspaces.audit import Verb, record
from workspaces.models import DeliveryStatus, Role, User, Webhook, WebhookDelivery, WebhookEvent, Workspace
from workspaces.models.audit_and_webhooks import WEBHOOK_NAME_LENGTH, WEBHOOK_URL_LENGTH
from workspaces.quotas import spend

MOST_HOOKS = 10  # per workspace; each event creates a delivery for each webhook
TURNED_OFF = kept("The webhook was turned off.")
BOTH_SIGN = timedelta(hours=24)  # after a change of the secret


def webhooks_of(workspace: Workspace) -> QuerySet[Webhook]:
    return Webhook.objects.filter(workspace=workspace).select_related("workspace", "created_by")


def get_webhook(user: User, workspace_id: str, public_id: str) -> Webhook:
    """Return a webhook.

    Raises NotFound if the user is no member or the webhook is of another workspace, Forbidden if the user is no owner.
    """
    workspace = get_workspace(user, workspace_id, need=Role.OWNER)
    hook = webhooks_of(workspace).filter(public_id=public_id).first()
    if hook is None:
        raise NotFound(_("This webhook does not exist, or it has been deleted."))
    hook.workspace = workspace  # with its role
    return hook


def create_webhook(workspace: Workspace, *, by: User, now: datetime, **values: Any) -> tuple[Webhook, str]:
    """Create a webhook from ``name``, ``url``, ``events`` and ``with_text``. Return it with its secret, which is shown
    once.

    Raises Invalid for a wrong value, Conflict if the workspace has ``MOST_HOOKS``.
    """
    workspace = get_workspace(by, workspace.public_id, need=Role.OWNER)
    secret = new_secret()
    hook = Webhook(workspace=workspace, created_by=by, created_at=now, updated_at=now)
    hook.sealed_secret = seal(secret)
    _set(hook, values)
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace.pk)
        if webhooks_of(workspace).count() >= MOST_HOOKS:
            raise Conflict(_("This workspace has %d webhooks, which is as many as it can have.") % MOST_HOOKS)
        hook.save()
        record(Verb.WEBHOOK_MADE, by=by, workspace=workspace, target=hook.public_id)
    return hook, secret


def update_webhook(webhook: Webhook, *, by: User, now: datetime, **changes: Any) -> Webhook:
    """Change the given fields of a webhook and return it.

    Disabling it gives up its waiting deliveries. Enabling it makes ``by`` its creator, since the previous one may no
    longer be an owner. Raises NotFound if the webhook was deleted or ``by`` is no member, Forbidden if ``by`` is no
    owner, and Invalid for a wrong value.
    """
    with transaction.atomic():
        held = _held(webhook, by)
        _set(held, changes)
        if changes.get("enabled") is True and not held.is_enabled:
            held.disabled_at, held.disabled_for, held.failing_since = None, "", None
            held.created_by = by
        elif changes.get("enabled") is False and held.is_enabled:
            held.disabled_at = now
            give_up_waiting(held)
        held.updated_at = now
        held.save()
        record(
            Verb.WEBHOOK_CHANGED,
            by=by,
            workspace=held.workspace,
            target=held.public_id,
            details={"fields": [*sorted(changes)]},
        )
    return held


def rotate_secret(webhook: Webhook, *, by: User, now: datetime) -> str:
    """Create a new secret and return it. It is shown once. For 24 hours the previous secret signs deliveries too."""
    secret = new_secret()
    with transaction.atomic():
        held = _held(webhook, by)
        held.sealed_before, held.before_until = held.sealed_secret, now + BOTH_SIGN
        held.sealed_secret, held.updated_at = seal(secret), now
        held.save()
        record(Verb.WEBHOOK_SECRET_CHANGED, by=by, workspace=held.workspace, target=held.public_id)
    return secret


def delete_webhook(webhook: Webhook, *, by: User) -> None:
    """Delete a webhook with its deliveries, including those not sent yet."""
    with transaction.atomic():
        held = _held(webhook, by)
        record(Verb.WEBHOOK_DELETED, by=by, workspace=held.workspace, target=held.public_id)
        held.delete()


def send_again(webhook: Webhook, delivery_id: str, *, by: User, now: datetime) -> WebhookDelivery:
    """Queue a delivery again under its id.

    Raises Conflict while the webhook is off, NotFound if the delivery was deleted, TooManyRequests above the limit.
    """
    spend("sendings", by, now=now)
    with transaction.atomic():
        held = _held(webhook, by)
        if not held.is_enabled:
            raise Conflict(_("This webhook is off. Turn it on first."))
        delivery = held.deliveries.select_for_update(of=("self",)).filter(public_id=delivery_id).first()
        if delivery is None:
            raise NotFound(_("This delivery does not exist, or is no longer kept."))
        delivery.status, delivery.next_attempt_at = DeliveryStatus.WAITING, now
        delivery.save(update_fields=["status", "next_attempt_at"])
        queue_sending()
    return delivery


def give_up_waiting(webhook: Webhook) -> None:
    webhook.deliveries.filter(status=DeliveryStatus.WAITING).update(
        status=DeliveryStatus.FAILED, next_attempt_at=None, error=TURNED_OFF
    )


def secrets_of(webhook: Webhook, *, now: datetime) -> list[str]:
    """Return the secrets that sign deliveries now. Raises Unsealable if no current key decrypts one."""
    sealed = [webhook.sealed_secret]
    if webhook.before_until is not None and webhook.before_until > now:
        sealed.append(webhook.sealed_before)
    return [unseal(each) for each in sealed]


def _held(webhook: Webhook, by: User) -> Webhook:
    get_workspace(by, webhook.workspace.public_id, need=Role.OWNER)
    rows = Webhook.objects.select_for_update(of=("self",)).select_related("workspace")
    held = rows.filter(pk=webhook.pk).first()
    if held is None:
        raise NotFound(_("This webhook does not exist, or it has been deleted."))
    return held


def _set(webhook: Webhook, values: dict[str, Any]) -> None:
    """Validate the values and set them. Raises Invalid with all errors by field."""
    wrong: dict[str, str] = {}
    if "name" in values:
        webhook.name = " ".join(values["name"].split())
        if not 1 <= len(webhook.name) <= WEBHOOK_NAME_LENGTH or CONTROL.search(webhook.name):
            wrong["name"] = _("Must have 1 to %d characters.") % WEBHOOK_NAME_LENGTH
    if "events" in values:
        webhook.events = [each for each in WebhookEvent.values if each in values["events"]]
        if not webhook.events or set(values["events"]) - set(webhook.events):
            wrong["events"] = _("Name at least one of %s.") % ", ".join(WebhookEvent.values)
    if "with_text" in values:
        webhook.with_text = values["with_text"]
        if webhook.with_text and webhook.workspace.local_only:
            wrong["with_text"] = _("The memories of this workspace never leave this machine.")
    if "url" in values:
        webhook.url = values["url"].strip()
        if problem := _wrong_address(webhook):
            wrong["url"] = problem
    if wrong:
        raise Invalid(fields=wrong)


def _wrong_address(webhook: Webhook) -> str:
    """Return an error message for the URL, or an empty string.

    Does not connect to it. The addresses that its host name resolves to are checked at each delivery.
    """
    example = _("Must be an address such as https://example.org/hooks.")
    if problem := wrong_shape(webhook.url, longest=WEBHOOK_URL_LENGTH, example=example, query=True):
        return problem
    if settings.WEBHOOKS_INTERNAL:
        return ""
    if is_internal(webhook.url):
        return _("Is an address inside this server's network. Your administrator can allow those.")
    if urlsplit(webhook.url).scheme != "https":
        return _("Must begin with https://, so that nobody can read it in transit.")
    if webhook.workspace.local_only:
        return _("This workspace keeps everything on this machine, so nothing is sent outside.")
    return ""


# Secrets and signatures of Standard Webhooks: symmetric, ``v1``.

PREFIX = "whsec_"
BYTES = 32  # the specification asks for 24 to 64


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(BYTES)).decode()


def headers_of(message_id: str, body: bytes, keys: Iterable[str], *, now: datetime) -> dict[str, str]:
    """Return the headers of a delivery, with a signature by each of ``keys``, the webhook's secrets."""
    stamp = str(int(now.timestamp()))
    signed = f"{message_id}.{stamp}.".encode() + body
    signatures = (
        hmac.new(b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256).digest() for key in keys
    )
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(f"v1,{b64encode(each).decode()}" for each in signatures),
    }


TextLoader = Callable[[Workspace, str], Mapping[str, Any] | None]
_loaders: dict[str, TextLoader] = {}
_ONE_JOB = "webhooks.job"
# Runs at every save; usually there is no webhook.
_ENABLED = PreparedQuery(
    lambda workspace: Webhook.objects.filter(workspace_id=workspace, disabled_at=None), workspace=int
)


def register_text(kind: str, loader: TextLoader) -> None:
    """Register the function that loads an item's text for webhooks whose deliveries include texts.

    ``kind``: the kind of item, such as "memory". ``loader``: called with the workspace and the item's public id. It
    returns the JSON to send, or None if the item is gone or personal.
    """
    _loaders[kind] = loader


def text_of(workspace: Workspace, kind: str, about: str) -> Mapping[str, Any] | None:
    return _loaders[kind](workspace, about)


def emit(workspace_id: int, event: str, abouts: Sequence[str], *, action: str) -> None:
    """Create a delivery of ``event`` to each subscribed webhook for each public id in ``abouts``, and queue sending.

    ``action``: what happened to the items, which receivers get too. Runs in the caller's transaction. One small query
    if no webhook is enabled.
    """
    hooks = [hook for hook in _ENABLED.all(workspace=workspace_id) if event in hook.events]
    now = timezone.now()
    told = [
        WebhookDelivery(
            webhook=hook, event=event, about=about, action=action, created_at=now, next_attempt_at=now
        )
        for hook in hooks
        for about in abouts
    ]
    WebhookDelivery.objects.bulk_create(told, batch_size=1000)
    # Failing webhooks are retried every minute, so they need no job now.
    if any(hook.failing_since is None for hook in hooks):
        queue_sending()


def queue_sending() -> None:
    """Queue the sending job after the commit, once per transaction."""
    if not any(waiting[1] is queue_one for waiting in connection.run_on_commit):
        transaction.on_commit(queue_one)


def queue_one() -> None:
    """Queue the sending job unless one is queued or running. Slow receivers then occupy at most one worker.

    A running job looks for new deliveries before it ends. A cache entry marks the job as queued or running; after a job
    was killed, the entry expires.
    """
    if cache.add(_ONE_JOB, True, settings.JOB_TIMEOUT):
        async_task("workspaces.tasks.tell_webhooks", task_name="tell webhooks")


def hold() -> None:
    """Mark the sending job as running, for the full job timeout."""
    cache.set(_ONE_JOB, True, settings.JOB_TIMEOUT)


def release() -> None:
    """Mark the sending job as ended, so that new events queue a job. The caller must then look for deliveries made
    before.
    """
    cache.delete(_ONE_JOB)
