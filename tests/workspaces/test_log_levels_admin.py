"""Superusers change what is logged on a page of the admin, and whoever has the machine by a command."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memoryhub.monitoring import log_levels
from tests.factories import make_user
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db
RECALL = "memories.recalling"


@pytest.fixture
def address() -> str:
    return reverse("admin:log_levels")


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def boss() -> Client:
    return signed_in(make_user("boss", is_staff=True, is_superuser=True))


def test_a_level_is_changed_shown_with_its_end_and_set_back_and_both_are_in_the_audit_log(
    boss: Client, address: str
) -> None:
    assert "Everything is logged as the settings say." in boss.get(address).content.decode()
    asked = {"logger": RECALL, "level": "DEBUG", "minutes": "20"}
    shown = boss.post(address, asked, follow=True).content.decode()
    [(name, (level, until))] = log_levels.wanted(timezone.now()).items()
    assert (name, level) == (RECALL, "DEBUG")
    assert f'datetime="{until.isoformat()}"' in shown
    assert "19\xa0minutes" in shown
    assert address in boss.get("/admin/").content.decode()
    boss.post(address, {"back": "yes"})
    assert log_levels.wanted(timezone.now()) == {}
    events = AuditEvent.objects.filter(verb="logging_changed").order_by("id")
    assert [(event.by_name, event.details) for event in events] == [
        ("boss", {"logger": RECALL, "level": "DEBUG", "minutes": 20}),
        ("boss", {"level": "as_set"}),
    ]
    about = boss.get("/admin/workspaces/auditevent/?about=admin").content.decode()
    assert "changed what is logged" in about
    assert all(words in about for words in (f"logger {RECALL}", "level DEBUG", "minutes 20"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"logger": "django.db.backends"}, {"logger": "openai"}, {"logger": "memories.recaling"}, {"logger": ""},
        {"logger": "<b>memories</b>"}, {"logger": "memories\x00"}, {"logger": "m" * 65}, {"level": "LOUD"},
        {"minutes": "0"}, {"minutes": "1441"}, {"minutes": "x"}, {"minutes": ""},
    ],
)  # fmt: skip
def test_what_the_command_refuses_is_refused_here(boss: Client, address: str, wrong: dict[str, str]) -> None:
    answer = boss.post(address, {"logger": RECALL, "level": "DEBUG", "minutes": "20"} | wrong)
    assert answer.status_code == 200 and "errorlist" in answer.content.decode()
    assert "<b>memories" not in answer.content.decode()
    assert cache.get(log_levels.KEY, {}) == {}
    assert not AuditEvent.objects.filter(verb="logging_changed").exists()


def test_what_the_command_changes_is_in_the_audit_log_without_a_name() -> None:
    call_command("log_level", RECALL, "debug", "--minutes", "20")
    call_command("log_level")
    call_command("log_level", "--back")
    with pytest.raises(CommandError):
        call_command("log_level", RECALL, "LOUD")
    events = AuditEvent.objects.filter(verb="logging_changed").order_by("id")
    assert [(event.by_name, event.details) for event in events] == [
        ("", {"logger": RECALL, "level": "DEBUG", "minutes": 20}),
        ("", {"level": "as_set"}),
    ]


def test_nobody_else_sees_or_changes_it(address: str) -> None:
    staff = make_user("staff", is_staff=True)
    staff.user_permissions.set(Permission.objects.all())
    for person in (staff, make_user("olive"), make_user("former", is_superuser=True)):
        client = signed_in(person)
        asked = {"logger": RECALL, "level": "DEBUG", "minutes": "20"}
        assert {client.get(address).status_code, client.post(address, asked).status_code} <= {302, 403}
        assert address not in client.get("/admin/").content.decode()
    assert cache.get(log_levels.KEY, {}) == {}
    assert Client().get(address).status_code == 302
    boss = Client(enforce_csrf_checks=True)
    boss.force_login(make_user("boss", is_staff=True, is_superuser=True))
    assert boss.post(address, {"back": "yes"}).status_code == 403
