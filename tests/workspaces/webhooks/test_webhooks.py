"""Webhooks, from events of a workspace to a receiver that verifies them."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from django_q.models import OrmQ
from standardwebhooks import WebhookVerificationError

from chat.models.runs import Run
from chat.runs.transitions import _end as end_run
from memories.forgetting.for_good import forget_memories
from memories.writing.changing import restore_memory
from memories.writing.gate import delete_memory, edit_memory, save_memory
from memories.writing.review import approve, reconsider
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import make_document, make_memory, make_webhook
from tests.rollback import rolled_back
from tests.workspaces.webhooks.receiver import Receiver, Told, receiving
from workspaces import tasks
from workspaces.actions.workspaces import update_workspace
from workspaces.models import AuditEvent, Webhook, WebhookDelivery
from workspaces.webhooks import hooks, sending
from workspaces.webhooks.hooks import emit

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOKS_INTERNAL = True
    with receiving() as receiver:
        yield receiver


def send(later: timedelta = timedelta()) -> str:
    return sending.send_due(seconds=5, now=timezone.now() + later)


def secret_of(hook: Webhook) -> str:
    return hooks.secrets_of(hook, now=timezone.now())[0]


def as_it_happened(receiver: Receiver) -> list[Told]:
    """Return the requests in the order of their events: concurrent ones arrive in any order."""
    noted = list(WebhookDelivery.objects.order_by("pk").values_list("public_id", flat=True))
    return sorted(receiver.told, key=lambda told: noted.index(told.id))


def heard(receiver: Receiver, hook: Webhook) -> list[tuple[str, str, str]]:
    said = [each.verified(secret_of(hook)) for each in as_it_happened(receiver)]
    return [(each["type"], each["data"]["action"], each["data"]["id"]) for each in said]


def test_each_thing_that_happens_is_told_once_and_verifies(cast: Cast, receiver: Receiver) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    now = timezone.now()
    memory = make_memory("The deadline is March 15", cast.editor, cast.workspace)
    edit_memory(memory, by=cast.editor, now=now, content="The deadline is March 16")
    delete_memory(memory, by=cast.editor, now=now)
    restore_memory(memory, by=cast.editor, now=now)
    forget_memories([memory], by=cast.owner, now=now)
    document = make_document(cast.owner, cast.workspace)
    facts: dict[str, Any] = {"workspace": cast.workspace, "user": cast.owner, "deadline_at": now}
    run = Run.objects.create(mode="loop", objective="Compare the offers", **facts)
    end_run(run, "done", "", now=now)
    end_run(Run.objects.create(mode="loop", objective="Mine", is_private=True, **facts), "done", "", now=now)
    send()
    assert heard(receiver, hook) == [
        ("memory.saved", "create", memory.public_id),
        ("memory.changed", "edit", memory.public_id),
        ("memory.forgotten", "delete", memory.public_id),
        ("memory.saved", "restore", memory.public_id),
        ("memory.forgotten", "forget", memory.public_id),
        ("document.ready", "ready", document.public_id),
        ("run.finished", "done", run.public_id),
    ]
    assert not any(word in each.body.decode() for each in receiver.told for word in ("March", "Compare"))
    assert set(WebhookDelivery.objects.values_list("status", "attempts", "answer_code")) == {
        ("delivered", 1, 204)
    }
    send()
    assert len(receiver.told) == 7
    with pytest.raises(WebhookVerificationError):
        receiver.told[0].verified("whsec_" + "A" * 43 + "=")


def test_text_goes_along_where_it_was_asked_for_and_never_of_what_is_forgotten(
    cast: Cast, receiver: Receiver
) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url, with_text=True)
    make_webhook(cast.workspace, cast.owner, url=receiver.url, events=["run.finished"])
    kept = make_memory("The deadline is March 15", cast.editor, cast.workspace, category="fact")
    gone = make_memory("The harbour opens at dawn", cast.editor, cast.workspace)
    forget_memories([gone], by=cast.owner, now=timezone.now())
    send()
    said = [each.verified(secret_of(hook))["data"] for each in as_it_happened(receiver)]
    assert [each["id"] for each in said] == [kept.public_id, gone.public_id, gone.public_id]
    assert (
        said[0]["memory"]["content"] == "The deadline is March 15" and said[0]["memory"]["category"] == "fact"
    )
    assert said[1]["memory"] is None and "memory" not in said[2]
    stored = str(list(WebhookDelivery.objects.values()))
    assert "March" not in stored and "harbour" not in stored


def test_personal_memories_and_proposals_are_nobodys_to_hear(cast: Cast, receiver: Receiver) -> None:
    from memories.models import Scope
    from memories.writing.gate import Draft
    from workspaces.access import default_workspace

    home = default_workspace(cast.owner)
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    make_webhook(home, cast.owner, url=receiver.url)
    mine = make_memory("Olive is vegetarian", cast.owner, scope=Scope.USER)
    edit_memory(mine, by=cast.owner, now=timezone.now(), content="Olive is vegan")
    draft = Draft("The oven is off by ten", cast.workspace, cast.owner).to_review()
    proposed = save_memory(draft, by=cast.owner, now=timezone.now()).memory
    assert not WebhookDelivery.objects.exists()
    approve(proposed, by=cast.owner, now=timezone.now())
    reconsider(proposed, by=cast.owner, now=timezone.now())
    send()
    assert heard(receiver, hook) == [
        ("memory.saved", "approve", proposed.public_id),
        ("memory.forgotten", "reconsider", proposed.public_id),
    ]


def test_what_is_rolled_back_is_told_to_nobody_and_many_at_once_are_each_told(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    from memories.writing.gate import Draft

    for _ in range(2):
        make_webhook(cast.workspace, cast.owner)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        make_memory("The deadline is March 15", cast.editor, cast.workspace)
        raise ZeroDivisionError
    assert not WebhookDelivery.objects.exists()
    texts = ["The harbour opens at dawn", "Cats purr", "Olive plays the cello"]
    with django_capture_on_commit_callbacks(execute=True):
        save_memories(
            [Draft(text, cast.workspace, cast.owner) for text in texts], by=cast.owner, now=timezone.now()
        )
    assert WebhookDelivery.objects.count() == 6
    queued = [job.func() for job in OrmQ.objects.all()]
    assert queued.count("workspaces.tasks.tell_webhooks") == 1


def test_a_receiver_that_fails_is_tried_less_and_less_often_under_the_same_id(
    cast: Cast, receiver: Receiver
) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    emit(cast.workspace.pk, "memory.saved", ["mem_" + "a" * 24], action="create")
    receiver.answers = [(500, {}), (302, {"location": receiver.url}), (503, {"retry-after": "5400"})]
    began, waits = timezone.now(), []
    for _attempt in range(4):
        delivery = WebhookDelivery.objects.get()
        sending.send_due(seconds=5, now=delivery.next_attempt_at or began)
        delivery.refresh_from_db()
        if delivery.next_attempt_at:
            waits.append(delivery.next_attempt_at - delivery.attempted_at)
            hook.refresh_from_db()
            assert hook.failing_since is not None
    assert waits == [timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=90)]
    assert len(receiver.told) == 4 and len({each.id for each in receiver.told}) == 1
    hook.refresh_from_db()
    assert (delivery.status, delivery.attempts, hook.failing_since) == ("delivered", 4, None)


def test_one_that_fails_holds_up_nobody(cast: Cast, receiver: Receiver) -> None:
    dead = make_webhook(cast.workspace, cast.owner, url="http://127.0.0.1:1/")
    make_webhook(cast.workspace, cast.owner, url=receiver.url)
    for _ in range(3):
        emit(cast.workspace.pk, "memory.saved", ["mem_" + "a" * 24], action="create")
    send()
    send()
    assert len(receiver.told) == 3
    assert (
        sum(dead.deliveries.values_list("attempts", flat=True)) == 3
    )  # in parallel, before the failure was known
    emit(cast.workspace.pk, "memory.saved", ["mem_" + "a" * 24], action="create")
    send(timedelta(hours=1))
    assert sum(dead.deliveries.values_list("attempts", flat=True)) == 4  # and then one at a time
    assert "could not be connected to" in dead.deliveries.order_by("attempted_at").last().error  # type: ignore[union-attr]


def test_after_five_days_or_when_it_is_gone_it_is_turned_off_with_a_notice(
    cast: Cast, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    cast.owner.email = "olive@example.org"
    cast.owner.save()
    dead = make_webhook(cast.workspace, cast.owner, url="http://127.0.0.1:1/")
    emit(cast.workspace.pk, "memory.saved", ["mem_" + "a" * 24], action="create")
    first = WebhookDelivery.objects.get()
    with django_capture_on_commit_callbacks(execute=True):
        for _attempt in range(len(sending.WAITS) + 1):
            first.refresh_from_db()
            if first.next_attempt_at is not None:
                sending.send_due(seconds=5, now=first.next_attempt_at)
    dead.refresh_from_db()
    first.refresh_from_db()
    assert dead.disabled_at is not None and dead.disabled_at - dead.failing_since >= timedelta(days=5)  # type: ignore[operator]
    assert (first.status, first.next_attempt_at) == ("failed", None)
    assert "Nothing could be delivered for 5 days." in mail.outbox[0].body
    assert AuditEvent.objects.filter(verb="webhook_disabled", target=dead.public_id).exists()
    gone = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    receiver.answers = [(410, {})]
    emit(cast.workspace.pk, "memory.saved", ["mem_" + "b" * 24], action="create")
    assert dead.deliveries.count() == 1, "one that is off is told of nothing"
    send()
    gone.refresh_from_db()
    assert not gone.is_enabled and "410" in gone.disabled_for
    with pytest.raises(Conflict):
        hooks.send_again(gone, gone.deliveries.get().public_id, by=cast.owner, now=timezone.now())
    hooks.update_webhook(gone, by=cast.owner, now=timezone.now(), enabled=True)
    hooks.send_again(gone, gone.deliveries.get().public_id, by=cast.owner, now=timezone.now())
    tasks.tell_webhooks()
    assert [each.id for each in receiver.told] == [gone.deliveries.get().public_id] * 2


def test_what_a_killed_process_had_claimed_is_sent_again_under_its_id(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    make_memory("The deadline is March 15", cast.editor, cast.workspace)
    with monkeypatch.context() as killed:
        killed.setattr(
            sending, "record_result", lambda *args, **kwargs: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            send()
    send()
    assert len(receiver.told) == 1, "for some minutes it is that process's"
    send(sending.CLAIMED_FOR)
    assert [each.id for each in receiver.told] == [hook.deliveries.get().public_id] * 2
    assert hook.deliveries.get().status == "delivered"


def test_after_a_change_of_the_secret_both_verify_for_a_day(cast: Cast, receiver: Receiver) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url)
    old = secret_of(hook)
    new = hooks.rotate_secret(hook, by=cast.owner, now=timezone.now())
    make_memory("The deadline is March 15", cast.editor, cast.workspace)
    send()
    assert old != new and receiver.told[0].verified(old) == receiver.told[0].verified(new)
    Webhook.objects.update(before_until=timezone.now())
    make_memory("Cats purr", cast.editor, cast.workspace)
    send()
    assert receiver.told[1].verified(new)
    with pytest.raises(WebhookVerificationError):
        receiver.told[1].verified(old)
    call_command("reseal", stdout=StringIO())
    assert secret_of(Webhook.objects.get()) == new and new not in str(Webhook.objects.values())


INSIDE = [
    "https://127.0.0.1/",
    "https://10.1.2.3/hook",
    "https://[::1]/",
    "https://[::ffff:192.168.0.1]/",
    "https://2130706433/",
    "https://wiki.internal/",
    "https://localhost./",
    "https://169.254.169.254/latest/",
    "http://example.org/",
    "ftp://example.org/",
    "https://user:pass@example.org/",
    "https://example.org/#a",
    "https://exa mple.org/",
    "",
]


def test_addresses_inside_are_refused_when_they_are_typed(cast: Cast) -> None:
    for url in INSIDE:
        with pytest.raises(Invalid) as refused:
            make_webhook(cast.workspace, cast.owner, url=url)
        assert "url" in refused.value.fields


def test_addresses_inside_are_refused_when_it_is_sent(
    cast: Cast, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is checked on sending, not only when it was typed."""
    port = receiver.url.split(":")[2].split("/")[0]
    inside = [(2, 1, 6, "", ("127.0.0.1", int(port))), (2, 1, 6, "", ("169.254.169.254", int(port)))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: inside)
    for url in rolled_back(
        ["https://127.0.0.1:{port}/", "https://rebinding.example:{port}/", "http://127.0.0.1:{port}/"]
    ):
        settings.WEBHOOKS_INTERNAL = True
        hook = make_webhook(cast.workspace, cast.owner, url=url.format(port=port))
        settings.WEBHOOKS_INTERNAL = False
        make_memory("The deadline is March 15", cast.editor, cast.workspace)
        send()
        assert not receiver.told, url
        delivery = hook.deliveries.get()
        assert delivery.status == "waiting" and (
            "may reach" in delivery.error or "may not go" in delivery.error
        ), url


def test_a_workspace_that_stays_here_tells_nobody_outside_and_no_text(
    cast: Cast, receiver: Receiver, settings: Any
) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url, with_text=True)
    far = make_webhook(cast.workspace, cast.owner)
    update_workspace(cast.workspace, by=cast.owner, local_only=True)
    make_memory("The deadline is March 15", cast.editor, cast.workspace)
    assert sending.allowed_addresses(Webhook.objects.get(pk=far.pk)) == sending.AddressRange.INTERNAL
    far.deliveries.all().delete()
    send()
    [told] = receiver.told
    assert told.verified(secret_of(hook))["data"]["memory"] is None
    cast.workspace.refresh_from_db()
    with pytest.raises(Invalid):
        make_webhook(cast.workspace, cast.owner, url=receiver.url, with_text=True)
    settings.WEBHOOKS_INTERNAL = False
    with pytest.raises(Invalid):
        make_webhook(cast.workspace, cast.owner)
    make_memory("Cats purr", cast.editor, cast.workspace)
    send()
    assert len(receiver.told) == 1


def test_owners_alone_and_so_many_of_a_workspace(cast: Cast) -> None:
    for person, error in ((cast.editor, Forbidden), (cast.viewer, Forbidden), (cast.stranger, NotFound)):
        with pytest.raises(error):
            make_webhook(cast.workspace, person)
    made = [make_webhook(cast.workspace, cast.owner) for _ in range(hooks.MOST_HOOKS)]
    with pytest.raises(Conflict):
        make_webhook(cast.workspace, cast.owner)
    for wrong in ({"events": []}, {"events": ["memory.read"]}, {"name": " "}, {"url": "x" * 2000}):
        with pytest.raises(Invalid):
            hooks.update_webhook(made[0], by=cast.owner, now=timezone.now(), **wrong)
    other = made[1].deliveries.create(event="memory.saved", about="", action="create")
    with pytest.raises(NotFound):
        hooks.send_again(made[0], other.public_id, by=cast.owner, now=timezone.now())


def test_deliveries_are_kept_for_a_month(cast: Cast) -> None:
    make_webhook(cast.workspace, cast.owner)
    make_memory("The deadline is March 15", cast.editor, cast.workspace)
    assert sending.sweep(now=timezone.now() + timedelta(days=29)) == 0
    assert sending.sweep(now=timezone.now() + timedelta(days=31)) == 1
