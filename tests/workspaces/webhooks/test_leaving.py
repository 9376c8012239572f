"""A webhook works while its creator owns the workspace, and stops when they leave."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from tests.conftest import Cast
from tests.factories import add_member, make_memory, make_user, make_webhook
from tests.rollback import rolled_back
from tests.workspaces.webhooks.receiver import Receiver, receiving
from workspaces.accounts.account_changes import delete_account
from workspaces.actions.workspaces import change_role, remove_member
from workspaces.models import AuditEvent, Membership, User, WebhookDelivery
from workspaces.webhooks import hooks, sending

pytestmark = pytest.mark.django_db
WHY = "Who made it is no longer an owner of this workspace."


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOKS_INTERNAL = True
    with receiving() as receiver:
        yield receiver


def send() -> str:
    return sending.send_due(seconds=5, now=timezone.now())


WAYS: dict[str, Callable[[Cast, User], object]] = {
    "left": lambda cast, maker: remove_member(cast.workspace, user=maker, by=maker),
    "demoted": lambda cast, maker: change_role(cast.workspace, user=maker, role="editor", by=cast.owner),
    "taken out in the admin": lambda cast, maker: Membership.objects.filter(user=maker).delete(),
    "closed": lambda cast, maker: User.objects.filter(pk=maker.pk).update(is_active=False),
    "gone": lambda cast, maker: delete_account(maker),
}


def test_it_is_off_at_once_and_not_with_the_next_minute(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    queued: list[str] = []
    monkeypatch.setattr(hooks, "async_task", lambda path, **_: queued.append(path))
    for way in rolled_back(["left", "demoted"]):
        queued.clear()
        hooks.release()
        maker = make_user("mallory")
        add_member(cast.workspace, user=maker, role="owner", by=cast.owner)
        theirs = make_webhook(cast.workspace, maker)
        with django_capture_on_commit_callbacks(execute=True):
            WAYS[way](cast, maker)
        assert queued == ["workspaces.tasks.tell_webhooks"], way
        sending.send_alone(seconds=1)
        theirs.refresh_from_db()
        assert not theirs.is_enabled, way


def test_what_a_leaver_made_stops_and_says_so(
    cast: Cast, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    for way in rolled_back(WAYS):
        receiver.told.clear()
        mail.outbox.clear()
        maker = make_user("mallory")
        add_member(cast.workspace, user=maker, role="owner", by=cast.owner)
        User.objects.filter(pk=cast.owner.pk).update(email="olive@example.org")
        theirs = make_webhook(cast.workspace, maker, url=receiver.url, with_text=True)
        other = make_webhook(cast.workspace, cast.owner, name="Ours", url=receiver.url)
        make_memory("The deadline is March 15", cast.editor, cast.workspace)
        WAYS[way](cast, maker)
        make_memory("The harbour opens at dawn", cast.editor, cast.workspace)
        with django_capture_on_commit_callbacks(execute=True):
            send()
        ids = set(WebhookDelivery.objects.filter(webhook=other).values_list("public_id", flat=True))
        assert {told.id for told in receiver.told} == ids and len(ids) == 2, way
        assert set(theirs.deliveries.values_list("status", "attempts")) == {("failed", 0)}, way
        theirs.refresh_from_db()
        assert (theirs.is_enabled, theirs.disabled_for) == (False, WHY), way
        browser = Client()
        browser.force_login(cast.owner)
        assert (
            browser.get(f"/workspaces/{cast.workspace.public_id}/webhooks/").content.decode().count(WHY) == 1
        ), way
        [told] = mail.outbox
        assert told.to == ["olive@example.org"] and WHY in told.body, way
        assert AuditEvent.objects.filter(verb="webhook_disabled", target=theirs.public_id).count() == 1, way
        hooks.update_webhook(theirs, by=cast.owner, now=timezone.now(), enabled=True)
        make_memory("Penguins cannot fly", cast.editor, cast.workspace)
        send()
        theirs.refresh_from_db()
        assert (theirs.created_by, theirs.is_enabled) == (cast.owner, True), "who turns it on answers for it"
        assert theirs.deliveries.filter(status="delivered").count() == 1, way
