"""Receivers and owners that would block others, and answers that would count as failures."""

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from memories.judging.secret_filter import RULES
from memories.models import Memory
from memoryhub.errors import TooManyRequests
from tests.conftest import Cast
from tests.factories import make_delivery, make_memory, make_webhook, make_workspace
from tests.workspaces.webhooks.receiver import Receiver, receiving
from workspaces import tasks
from workspaces.models import Webhook
from workspaces.webhooks import hooks, sending

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOKS_INTERNAL = True
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Callable[[Callable[[], Any]], None]:
    def commit(act: Callable[[], Any]) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            act()
        connection.run_on_commit.clear()  # as a commit does, and the fixture does not

    return commit


@pytest.fixture
def save(cast: Cast, committed: Callable[[Callable[[], Any]], None]) -> Callable[[str], None]:
    return lambda text: committed(lambda: make_memory(text, cast.owner, cast.workspace))


def jobs() -> int:
    return [job.func() for job in OrmQ.objects.all()].count("workspaces.tasks.tell_webhooks")


def test_one_job_at_a_time_tells_of_all_and_loses_nothing(
    cast: Cast, receiver: Receiver, save: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        make_webhook(cast.workspace, cast.owner, url=receiver.url)
    for text in ("Cats purr", "The harbour opens at dawn", "Olive plays the cello"):
        save(text)
    tasks.send_webhooks()
    assert jobs() == 1
    OrmQ.objects.all().delete()
    told_of = sending.send_due

    def meanwhile(**how: Any) -> str:
        said = told_of(**how)
        save("The deadline is March 15")
        assert jobs() == 0, "while one runs"
        return said

    with monkeypatch.context() as saving:
        saving.setattr(sending, "send_due", meanwhile)
        tasks.tell_webhooks()
    assert (len(receiver.told), jobs()) == (6, 1)
    OrmQ.objects.all().delete()
    tasks.tell_webhooks()
    assert (len(receiver.told), jobs()) == (8, 0)
    save("Whales sing")
    assert jobs() == 1


def test_a_job_that_breaks_and_one_that_is_killed_leave_room_for_the_next(
    cast: Cast, save: Callable[[str], None], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_webhook(cast.workspace, cast.owner)
    monkeypatch.setattr(sending, "send_due", lambda **how: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        tasks.tell_webhooks()
    settings.JOB_TIMEOUT = 0  # the lock of a killed job expires with its timeout
    hooks.hold()
    save("Cats purr")
    assert jobs() == 1


def test_what_fails_waits_for_the_minute(cast: Cast, settings: Any) -> None:
    settings.WEBHOOKS_INTERNAL = True
    dead = make_webhook(cast.workspace, cast.owner, url="http://127.0.0.1:1/")
    Webhook.objects.update(failing_since=timezone.now())
    for _ in range(3):
        make_delivery(dead)
    tasks.tell_webhooks()
    assert jobs() == 0
    assert sorted(dead.deliveries.values_list("attempts", flat=True)) == [0, 0, 1]


def test_sending_again_is_limited(cast: Cast, committed: Callable[[Callable[[], Any]], None]) -> None:
    delivery = make_delivery(make_webhook(cast.workspace, cast.owner), status="delivered")
    now = timezone.now()

    def again() -> None:
        hooks.send_again(delivery.webhook, delivery.public_id, by=cast.owner, now=now)

    for _ in range(10):
        committed(again)
    with pytest.raises(TooManyRequests):
        again()
    assert jobs() == 1


def test_one_persons_many_do_not_keep_anothers_one_waiting(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "HOOKS_AT_ONCE", 3)
    now, room = timezone.now(), make_workspace(owner=cast.editor)
    for hook in [make_webhook(room, cast.editor) for _ in range(hooks.MOST_HOOKS)]:
        for _ in range(2):
            make_delivery(hook, next_attempt_at=now - timedelta(minutes=30))
    mine = make_delivery(make_webhook(cast.workspace, cast.owner), next_attempt_at=now)
    Webhook.objects.update(failing_since=now)
    claimed = sending._claim(set(), now=now)
    assert len(claimed) == 3 and mine in claimed


def test_names_that_are_never_found_hold_up_nobody(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, freed, ended = socket.getaddrinfo, threading.Event(), list[str]()

    def lookup(host: str, *args: Any, **kwargs: Any) -> Any:
        if host != "never.example":
            return asked(host, *args, **kwargs)
        freed.wait(10)
        ended.append(host)
        raise socket.gaierror

    monkeypatch.setattr("socket.getaddrinfo", lookup)
    monkeypatch.setattr(sending, "ANSWER_SECONDS", 0.7)
    try:
        for _ in range(4):
            bad = make_webhook(cast.workspace, cast.owner, url="http://never.example/")
            for _ in range(sending.EACH_AT_ONCE):
                make_delivery(bad)
        good = make_webhook(cast.workspace, cast.owner, url=receiver.url)
        make_delivery(good)
        sending.send_due(seconds=0.1, now=timezone.now())
        assert not ended, "nobody waits for them"
    finally:
        freed.set()
    good.refresh_from_db()
    assert (len(receiver.told), good.failing_since, good.deliveries.get().status) == (1, None, "delivered")
    bad.refresh_from_db()
    assert bad.failing_since is not None


def test_a_packed_answer_takes_it_all_the_same(cast: Cast, receiver: Receiver) -> None:
    delivery = make_delivery(make_webhook(cast.workspace, cast.owner, url=receiver.url))
    receiver.answers = [(200, {"content-encoding": "gzip"})]
    sending.send_due(seconds=5, now=timezone.now())
    delivery.refresh_from_db()
    assert (delivery.status, delivery.answer_code) == ("delivered", 200)


def test_what_newer_rules_for_credentials_refuse_is_told_to_nobody(cast: Cast, receiver: Receiver) -> None:
    hook = make_webhook(cast.workspace, cast.owner, url=receiver.url, with_text=True)
    old, refused = (
        make_memory(text, cast.owner, cast.workspace) for text in ("Cats purr", "The door is green")
    )
    Memory.objects.update(secret_rules=RULES - 1)
    Memory.objects.filter(pk=refused.pk).update(content="The database password is hunter2-Xk93!qLz")
    sending.send_due(seconds=5, now=timezone.now())
    [secret] = hooks.secrets_of(hook, now=timezone.now())
    said = {each["id"]: each["memory"] for each in (told.verified(secret)["data"] for told in receiver.told)}
    assert said[refused.public_id] is None and said[old.public_id]["content"] == "Cats purr"
