"""Superusers' changes to other accounts: after re-authentication, logged, and with a mail to the person."""

import logging
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission
from django.core import mail
from django.test import Client

from tests.admin_pages import run_action
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import PASSWORD, make_user
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db(transaction=True)  # mails are sent on commit
PEOPLE = "/admin/workspaces/user/"
NEW = {"usable_password": "true", "password1": "a quiet evening", "password2": "a quiet evening"}


@pytest.fixture
def boss(db: None) -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def olive(db: None) -> User:
    person = make_user("olive", email="olive@example.org")
    EmailAddress.objects.create(user=person, email="olive@example.org", primary=True, verified=True)
    return person


def form(person: User, **changes: Any) -> dict[str, Any]:
    return {"username": person.username, "email": person.email, "memory_default": ""} | changes


def noted(verb: str) -> list[tuple[str, str]]:
    return list(AuditEvent.objects.filter(verb=verb).values_list("by_name", "target"))


def test_a_password_is_set_after_a_look_who_it_is_noted_and_told(boss: Client, olive: User) -> None:
    theirs = Client()
    theirs.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    page = f"{PEOPLE}{olive.pk}/password/"
    assert boss.get(page)["Location"].startswith("/accounts/reauthenticate/")
    assert boss.post(page, NEW)["Location"] == page, "what was typed is not kept"
    assert "account_reauthentication_state" not in boss.session
    olive.refresh_from_db()
    assert olive.check_password(PASSWORD) and not mail.outbox and not noted("password_changed")
    type_password_again(boss)
    assert boss.post(page, NEW).status_code == 302
    olive.refresh_from_db()
    assert olive.check_password("a quiet evening")
    assert noted("password_changed") == [("root", olive.public_id)]
    assert theirs.get("/")["Location"].startswith("/accounts/login/")
    (told,) = mail.outbox
    assert told.to == ["olive@example.org"]
    assert "administrator (root)" in told.body and "Your password was changed" in told.body
    assert "quiet evening" not in told.body


def test_a_wrong_new_password_changes_and_tells_nothing(boss: Client, olive: User) -> None:
    type_password_again(boss)
    assert boss.post(f"{PEOPLE}{olive.pk}/password/", NEW | {"password2": "other"}).status_code == 200
    assert not mail.outbox and not noted("password_changed")
    assert boss.get(f"{PEOPLE}999999/password/").status_code == 404


def test_ones_own_password_set_in_the_admin_keeps_this_session_alone(boss: Client) -> None:
    root = User.objects.get(username="root")
    elsewhere = Client()
    elsewhere.post("/accounts/login/", {"login": "root", "password": PASSWORD})
    type_password_again(boss)
    boss.post(f"{PEOPLE}{root.pk}/password/", NEW)
    assert boss.get(PEOPLE).status_code == 200
    assert elsewhere.get(PEOPLE).status_code == 302


def test_a_new_address_is_told_to_the_old_one_which_opens_nothing_any_more(boss: Client, olive: User) -> None:
    page = f"{PEOPLE}{olive.pk}/change/"
    asked = boss.post(page, form(olive, email="new@example.org"))
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    olive.refresh_from_db()
    assert olive.email == "olive@example.org" and not mail.outbox
    boss.post(asked["Location"], {"password": PASSWORD})  # continues with the original request
    olive.refresh_from_db()
    assert olive.email == "new@example.org"
    assert noted("email_changed") == [("root", olive.public_id)]
    assert {told.to[0] for told in mail.outbox} == {"olive@example.org", "new@example.org"}
    assert [(row.email, row.primary) for row in EmailAddress.objects.all()] == [("new@example.org", True)]
    mail.outbox.clear()
    Client().post("/accounts/password/reset/", {"email": "olive@example.org"})
    assert not any("/reset/key/" in str(told.body) for told in mail.outbox)


def test_what_was_asked_goes_on_past_the_check_for_forgery(olive: User) -> None:
    make_user("root", is_staff=True, is_superuser=True)
    boss = Client(enforce_csrf_checks=True)

    def token(page: str) -> dict[str, str]:
        boss.get(page)
        return {"csrfmiddlewaretoken": boss.cookies["csrftoken"].value}

    page = f"{PEOPLE}{olive.pk}/change/"
    boss.post("/accounts/login/", {"login": "root", "password": PASSWORD} | token("/accounts/login/"))
    session = boss.session
    session["account_authentication_methods"][-1]["at"] -= 15 * 60 + 1  # signing in counts for a while
    session.save()
    asked = boss.post(page, form(olive, email="new@example.org") | token(page))["Location"]
    assert boss.post(asked, {"password": PASSWORD} | token(asked)).status_code == 302
    olive.refresh_from_db()
    assert olive.email == "new@example.org"


def test_rights_and_groups_are_asked_about_noted_and_told(boss: Client, olive: User) -> None:
    group = Group.objects.create(name="Moderators")
    right = Permission.objects.get(codename="view_memory")
    page = f"{PEOPLE}{olive.pk}/change/"
    raised = form(olive, is_staff="on", groups=[group.pk], user_permissions=[right.pk])
    assert boss.post(page, raised)["Location"].startswith("/accounts/reauthenticate/")
    olive.refresh_from_db()
    assert not olive.is_staff and not olive.groups.exists() and not olive.user_permissions.exists()
    type_password_again(boss)
    assert boss.post(page, raised).status_code == 302
    assert olive.groups.get() == group
    event = AuditEvent.objects.get(verb="rights_changed")
    assert (event.target, event.details) == (
        olive.public_id,
        {"fields": ["is_staff", "groups", "user_permissions"]},
    )
    (told,) = mail.outbox
    assert str(told.body).count("What you may do as an administrator was changed.") == 1


def test_a_name_is_changed_without_being_asked_and_nobody_is_told(boss: Client, olive: User) -> None:
    assert boss.post(f"{PEOPLE}{olive.pk}/change/", form(olive, first_name="Olive")).status_code == 302
    olive.refresh_from_db()
    assert olive.first_name == "Olive" and not mail.outbox


def test_two_factor_sign_in_is_turned_off_after_a_look_who_it_is(boss: Client, olive: User) -> None:
    row = Authenticator.objects.create(user=olive, type="totp", data={})
    run_action(boss, "/admin/mfa/authenticator/", "turn_off", row)
    assert Authenticator.objects.exists() and not mail.outbox
    type_password_again(boss)
    run_action(boss, "/admin/mfa/authenticator/", "turn_off", row)
    assert not Authenticator.objects.exists()
    assert "Two-factor sign-in was turned off" in str(mail.outbox[0].body)


def test_a_mail_server_that_fails_undoes_nothing_and_is_logged_without_the_text(
    boss: Client, olive: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError("554 olive@example.org: Your password was changed")

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
    type_password_again(boss)
    with caplog.at_level(logging.DEBUG):
        assert boss.post(f"{PEOPLE}{olive.pk}/password/", NEW).status_code == 302
    olive.refresh_from_db()
    assert olive.check_password("a quiet evening")
    assert "A mail was not sent: builtins.OSError" in caplog.text
    assert "olive@example.org" not in caplog.text and "Your password" not in caplog.text


def test_who_has_no_address_is_told_nothing_and_without_mail_the_admin_says_so(
    boss: Client, settings: Any
) -> None:
    nobody = make_user("nemo")
    type_password_again(boss)
    boss.post(f"{PEOPLE}{nobody.pk}/password/", NEW)
    assert not mail.outbox
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    page = boss.post(
        f"{PEOPLE}{nobody.pk}/password/",
        NEW,
        follow=True,
    )
    assert "tell them yourself" in page.content.decode()


def test_the_admins_own_page_for_a_password_leads_to_the_one_that_asks_for_a_code(boss: Client) -> None:
    assert boss.get("/admin/password_change/")["Location"] == "/accounts/password/change/"
    assert boss.post("/admin/password_change/", {"new_password1": "x"}).status_code == 302


def test_staff_with_every_right_reopen_no_superuser_and_set_no_password(cast: Cast) -> None:
    root = make_user("root", is_staff=True, is_superuser=True, is_active=False)
    helper = make_user("mod", is_staff=True)
    helper.user_permissions.set(Permission.objects.all())
    client = Client()
    client.force_login(helper)
    type_password_again(client)
    run_action(client, PEOPLE, "reopen", root)
    root.refresh_from_db()
    assert not root.is_active
    for person in (cast.owner, helper):
        assert client.get(f"{PEOPLE}{person.pk}/password/").status_code == 403
        assert client.post(f"{PEOPLE}{person.pk}/password/", NEW).status_code == 403
        hostile = {"email": "thief@example.com", "username": "taken", "is_staff": "on", "first_name": "Ann"}
        client.post(f"{PEOPLE}{person.pk}/change/", form(person, **hostile))
        person.refresh_from_db()
        assert (person.email, person.first_name, person.username == "taken") == ("", "Ann", False)
