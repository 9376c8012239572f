"""Sending webhook deliveries, at least once: due deliveries are claimed, sent and recorded.

A claim lasts some minutes. If the job was killed, its deliveries are then due again, with the same id. Nothing is sent
inside a transaction. A receiver that does not answer is retried after longer and longer waits (``WAITS``), without
delaying others.
"""

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet, Window
from django.db.models.functions import Random, RowNumber
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.encryption import Unsealable
from memoryhub.llm.addresses import AddressRange, AddressRefused
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.llm.http_clients import Endpoint, async_client
from memoryhub.localization import speaking_to, translated
from workspaces.audit import Verb, record
from workspaces.data_policy import DataPolicy
from workspaces.models import DeliveryStatus, Membership, Role, User, Webhook, WebhookDelivery, WebhookEvent
from workspaces.webhooks.hooks import (
    give_up_waiting,
    headers_of,
    hold,
    queue_one,
    release,
    secrets_of,
    text_of,
)

logger = logging.getLogger(__name__)
# Delays after failed attempts, twelve attempts within six days. Documented in docs/programs.md.
WAITS = [timedelta(minutes=each) for each in (1, 5, 30, 120, 300, 600, *[1440] * 5)]
LONGEST_WAIT = timedelta(days=1)  # limit for a receiver's Retry-After
DISABLED_AFTER = timedelta(days=5)  # without a successful delivery
CLAIMED_FOR = timedelta(minutes=10)
ANSWER_SECONDS = 15.0  # for an attempt, from the DNS lookup to the response's status line
HOOKS_AT_ONCE, EACH_AT_ONCE = 20, 10
KEPT_FOR = timedelta(days=30)


@dataclass(frozen=True)
class Answer:
    """Result of an attempt to send a delivery.

    ``code``: HTTP status, or None without a response. ``wait``: the delay in seconds that the receiver requested.
    """

    code: int | None = None
    error: str = ""
    wait: int = 0

    @property
    def ok(self) -> bool:
        return self.code is not None and 200 <= self.code < 300


def send_alone(*, seconds: float) -> str:
    """Send due deliveries while no other job does, and queue another job if new deliveries are left.

    Failed deliveries wait for the next job, which runs every minute.
    """
    hold()
    try:
        summary = send_due(seconds=seconds, now=timezone.now())
    finally:
        release()
    if _due(timezone.now()).filter(webhook__failing_since=None).exists():
        queue_one()
    return summary


def send_due(*, seconds: float, now: datetime) -> str:
    """Send due deliveries for ``seconds``, plus at most ``ANSWER_SECONDS``. Return a summary."""
    ends, delivered, failing = time.monotonic() + seconds, 0, set[int]()
    while time.monotonic() < ends and (claimed := _claim(failing, now=now)):
        answers = asyncio.run(_post_all([_prepared(each) for each in claimed]))
        for delivery, answer in zip(claimed, answers, strict=True):
            record_result(delivery, answer, now=now)
            delivered += answer.ok
            if not answer.ok:
                failing.add(delivery.webhook_id)
    return f"{delivered} delivered, {len(failing)} webhooks did not take theirs"


def sweep(*, now: datetime) -> int:
    """Delete deliveries older than a month. Return the number deleted."""
    return WebhookDelivery.objects.filter(created_at__lt=now - KEPT_FOR).delete()[0]


def _due(now: datetime) -> QuerySet[WebhookDelivery]:
    waiting = WebhookDelivery.objects.filter(status=DeliveryStatus.WAITING, next_attempt_at__lte=now)
    return waiting.filter(webhook__disabled_at=None).order_by("next_attempt_at", "pk")


def _claim(failing: set[int], *, now: datetime) -> list[WebhookDelivery]:
    """Return the oldest due deliveries, claimed for this job, and count an attempt for each.

    ``failing``: webhooks to leave out. A webhook that failed before gets one delivery at a time. Webhooks are chosen in
    random order, taking turns by creator, so that the many webhooks of one person do not delay others.
    """
    _disable_those_of_former_owners(now=now)
    due = _due(now).exclude(webhook__in=failing)
    turn = Window(RowNumber(), partition_by=[F("created_by")], order_by=Random())
    hooks = Webhook.objects.filter(Exists(due.filter(webhook=OuterRef("pk")))).annotate(turn=turn)
    claimed: list[WebhookDelivery] = []
    with transaction.atomic():
        for hook in hooks.order_by("turn", Random())[:HOOKS_AT_ONCE]:
            rows = due.filter(webhook=hook).select_for_update(of=("self",), skip_locked=True)
            most = EACH_AT_ONCE if hook.failing_since is None else 1
            claimed += rows.select_related("webhook__workspace")[:most]
        WebhookDelivery.objects.filter(pk__in=[each.pk for each in claimed]).update(
            attempts=F("attempts") + 1, attempted_at=now, next_attempt_at=now + CLAIMED_FOR
        )
    for each in claimed:
        each.attempts += 1
    return claimed


def payload_of(delivery: WebhookDelivery) -> dict[str, Any]:
    """Return the payload, which has only ids unless the webhook includes texts.

    The text is null if the item no longer exists or may not leave this machine.
    """
    hook, kind = delivery.webhook, delivery.event.partition(".")[0]
    data: dict[str, Any] = {
        "workspace_id": hook.workspace.public_id,
        "kind": kind,
        "id": delivery.about,
        "action": delivery.action,
    }
    if hook.with_text and delivery.event != WebhookEvent.MEMORY_FORGOTTEN:
        try:
            DataPolicy.to_model(hook.workspace, is_local=False, personal=False)
            data[kind] = text_of(hook.workspace, kind, delivery.about)
        except ModelNotLocal:
            data[kind] = None
    stamp = delivery.created_at.isoformat().replace("+00:00", "Z")
    return {"type": delivery.event, "timestamp": stamp, "data": data}


def allowed_addresses(webhook: Webhook) -> AddressRange | None:
    """Return the range of addresses that this webhook may reach by the current settings, or None if it may reach none.

    Usually these are public addresses; with the setting WEBHOOKS_INTERNAL, all. Deliveries without encryption, and
    those of local-only workspaces, may reach internal addresses only, and none without that setting.
    """
    inside = settings.WEBHOOKS_INTERNAL
    if webhook.workspace.local_only or urlsplit(webhook.url).scheme != "https":
        return AddressRange.INTERNAL if inside else None
    return AddressRange.ANYWHERE if inside else AddressRange.PUBLIC


def record_result(delivery: WebhookDelivery, answer: Answer, *, now: datetime) -> None:
    """Record the result of an attempt. Disable the webhook if it has failed for ``DISABLED_AFTER`` or answered 410."""
    with transaction.atomic():
        hook = Webhook.objects.select_for_update(of=("self",)).filter(pk=delivery.webhook_id).first()
        if hook is None:
            return
        row = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts)
        if answer.ok:
            row.update(
                status=DeliveryStatus.DELIVERED, next_attempt_at=None, answer_code=answer.code, error=""
            )
            if hook.failing_since is not None:
                hook.failing_since = None
                hook.save(update_fields=["failing_since"])
            return
        tried_out = delivery.attempts > len(WAITS)
        wait = WAITS[min(delivery.attempts, len(WAITS)) - 1]
        requested_wait = min(timedelta(seconds=answer.wait), LONGEST_WAIT)
        row.update(
            status=DeliveryStatus.FAILED if tried_out else DeliveryStatus.WAITING,
            next_attempt_at=None if tried_out else now + max(wait, requested_wait),
            answer_code=answer.code,
            error=answer.error[:300],
        )
        hook.failing_since = hook.failing_since or now
        hook.save(update_fields=["failing_since"])
        if answer.code == 410:
            _disable(hook, _("Its address answered that it is gone (410)."), now=now)
        elif hook.failing_since <= now - DISABLED_AFTER:
            _disable(hook, _("Nothing could be delivered for %d days.") % DISABLED_AFTER.days, now=now)


def _disable_those_of_former_owners(*, now: datetime) -> None:
    """Disable webhooks whose creator is no longer an owner of the workspace, so that former owners get no events."""
    owners = Membership.objects.filter(role=Role.OWNER, user__is_active=True)
    theirs = owners.filter(workspace=OuterRef("workspace"), user=OuterRef("created_by"))
    with transaction.atomic():
        rows = Webhook.objects.select_for_update(of=("self",)).select_related("workspace")
        for hook in rows.filter(~Exists(theirs), disabled_at=None).order_by("pk"):
            _disable(hook, _("Who made it is no longer an owner of this workspace."), now=now)


def _disable(hook: Webhook, why: str, *, now: datetime) -> None:
    """Disable a webhook, record it in the audit log, and mail the owners."""
    hook.disabled_at, hook.disabled_for = now, why
    hook.save(update_fields=["disabled_at", "disabled_for"])
    give_up_waiting(hook)
    record(Verb.WEBHOOK_DISABLED, by=None, workspace=hook.workspace, target=hook.public_id)
    owners = User.objects.filter(
        memberships__workspace=hook.workspace_id, memberships__role=Role.OWNER, is_active=True
    )
    for owner in owners.exclude(email=""):
        with speaking_to(owner):
            text = _("The webhook “%(name)s” was turned off. %(why)s You can turn it on again on its page.")
            body = text % {"name": mail.as_name(hook.name), "why": translated(why)}
            mail.send(_("A webhook was turned off"), body, [owner.email])


@dataclass(frozen=True)
class _Prepared:
    url: str = ""
    address_range: AddressRange = AddressRange.PUBLIC
    body: bytes = b""
    headers: dict[str, str] | None = None
    refused: str = ""


def _prepared(delivery: WebhookDelivery) -> _Prepared:
    hook, address_range = delivery.webhook, allowed_addresses(delivery.webhook)
    if address_range is None:
        return _Prepared(refused=_("Webhooks may not go to this address from this workspace."))
    try:
        body = json.dumps(payload_of(delivery), ensure_ascii=False, separators=(",", ":")).encode()
        keys = secrets_of(hook, now=timezone.now())
    except Unsealable:
        return _Prepared(refused=_("Its secret cannot be read any more. Change it."))
    headers = headers_of(delivery.public_id, body, keys, now=timezone.now())
    fixed = {"content-type": "application/json", "user-agent": "MemoryHub"}
    return _Prepared(hook.url, address_range, body, fixed | headers)


async def _post_all(prepared: Sequence[_Prepared]) -> list[Answer]:
    return await asyncio.gather(*map(_post, prepared))


async def _post(prepared: _Prepared) -> Answer:
    """Make one attempt. Only the status is used; the body is not read."""
    if prepared.refused:
        return Answer(error=prepared.refused)
    endpoint = Endpoint(prepared.url, api_key="", model="", address_range=prepared.address_range)
    try:
        async with asyncio.timeout(ANSWER_SECONDS), async_client(endpoint) as client:
            client.event_hooks = {"request": client.event_hooks["request"]}  # the others bound the body
            sent = client.stream("POST", prepared.url, content=prepared.body, headers=prepared.headers)
            async with sent as response:
                return _read(response)
    except AddressRefused:
        return Answer(error=_("Not an address that webhooks may reach."))
    except (TimeoutError, httpx2.TimeoutException):
        return Answer(error=_("There was no answer within %d seconds.") % ANSWER_SECONDS)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
        logger.info("A webhook could not be told: %s", type(error).__name__)
        return Answer(error=_("The address could not be connected to, or the connection broke."))


def _read(response: httpx2.Response) -> Answer:
    code = response.status_code
    if 200 <= code < 300:
        return Answer(code)
    if 300 <= code < 400:
        return Answer(code, _("The address answered with a redirect, and none is followed."))
    retry_after = response.headers.get("retry-after", "")
    wait = int(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 8 else 0
    return Answer(code, _("The address answered %d.") % code, wait)
