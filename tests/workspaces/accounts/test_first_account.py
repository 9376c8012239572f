"""The first user on a machine that serves only itself becomes its administrator; no one else does."""

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from pytest_django.fixtures import Settings

from tests.factories import PASSWORD, make_user
from tests.races import Pause, Work, meanwhile
from tests.rollback import rolled_back
from tests.workspaces.accounts.test_single_sign_on import go, provider, single_sign_on
from workspaces.accounts import sign_up as first_account
from workspaces.models import AuditEvent, User

__all__ = ["provider", "single_sign_on"]
pytestmark = pytest.mark.django_db
SIGN_UP = "/accounts/signup/"


@pytest.fixture(autouse=True)
def default_hosts(settings: Settings) -> None:
    """Allow the hosts of a fresh installation; tests have others."""
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "127.0.0.1"]


def sign_up(name: str = "ada", **sent: Any) -> Client:
    client = Client(**{"SERVER_NAME": "localhost", "SERVER_PORT": "8000"} | sent)
    form = {"username": name, "email": f"{name}@example.org", "password1": PASSWORD, "password2": PASSWORD}
    client.post(SIGN_UP, form)
    return client


def administrators() -> list[str]:
    return list(User.objects.filter(is_staff=True, is_superuser=True).values_list("username", flat=True))


def test_first_person_becomes_administrator_and_second_does_not() -> None:
    for sent in rolled_back(
        [
            {},
            {"SERVER_NAME": "127.0.0.1"},
            {"HTTP_HOST": "[::1]:8000", "REMOTE_ADDR": "::1"},
            {"REMOTE_ADDR": "::ffff:127.0.0.1"},
        ]
    ):
        first, second = sign_up("ada", **sent), sign_up("bea", **sent)
        assert administrators() == ["ada"], sent
        assert first.session[first_account.TOLD] and first_account.TOLD not in second.session
        event = AuditEvent.objects.get(verb="rights_changed")
        assert (event.target, event.by_id) == (User.objects.get(username="ada").public_id, "")


ELSEWHERE = [
    {"REMOTE_ADDR": "192.168.1.7"},
    {"REMOTE_ADDR": "192.168.1.7", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
    {"REMOTE_ADDR": "192.168.1.7", "HTTP_HOST": "localhost"},
    {"REMOTE_ADDR": ""},  # by a Unix socket, without an address
    {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
    {"HTTP_X_FORWARDED_FOR": ""},
    {"HTTP_X_REAL_IP": "127.0.0.1"},
    {"HTTP_FORWARDED": "for=127.0.0.1"},
    {"HTTP_X_FORWARDED_HOST": "localhost"},
    {"HTTP_VIA": "1.1 proxy"},
    {"HTTP_X_FORWARDED_PROTO": "http"},
    {"HTTP_X_FORWARDED_SERVER": "hub"},
    {"HTTP_CF_CONNECTING_IP": "203.0.113.7"},
    {"HTTP_X_ORIGINAL_FORWARDED_FOR": "203.0.113.7"},
    {"SERVER_PROTOCOL": "HTTP/1.0"},  # as nginx forwards by default
    {"HTTP_HOST": "localhost.evil.example"},
    {"HTTP_HOST": "evil.example"},  # whose DNS now says 127.0.0.1
    {"HTTP_HOST": "127.0.0.1.evil.example"},
    {"HTTP_HOST": "localhost@evil.example"},
]


def test_nobody_is_who_comes_from_elsewhere_or_past_somebody() -> None:
    for sent in rolled_back(ELSEWHERE):
        sign_up(**sent)
        assert administrators() == [], sent


REACHABLE: list[dict[str, Any]] = [
    {"HOST": "0.0.0.0"},
    {"HOST": ""},
    {"HOST": "::"},
    {"HOST": "192.168.1.2"},
    {"HOST": "hub.example.org"},
    {"ALLOWED_HOSTS": ["localhost", "hub.example.org"]},
    {"ALLOWED_HOSTS": ["*"]},
    {"ALLOWED_HOSTS": [".localhost"]},
    {"TRUSTED_PROXIES": 1},
    {"HTTPS": True},
    {"CSRF_TRUSTED_ORIGINS": ["https://hub.example.org"]},
    {"SCIM_TOKEN": "t" * 32},
    {"SIGNUP_DOMAINS": ["example.org"]},
    {"OIDC": {"client_id": "hub"}},
    {"OAUTH": {"github": {"client_id": "hub"}}},
    {"SIGNUP_OPEN": False},
]


def test_nobody_is_where_others_may_come() -> None:
    for setting in rolled_back(REACHABLE):
        with override_settings(**setting):
            sign_up()
        assert administrators() == [], setting


def test_who_was_made_before_is_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by the environment, by a directory, by a command, closed or not."""
    made = make_user("made", is_active=False)
    made.set_unusable_password()
    made.save()
    sign_up()
    assert administrators() == []
    User.objects.all().delete()
    monkeypatch.setenv("MEMORYHUB_ADMIN_USERNAME", "olive")
    monkeypatch.setenv("MEMORYHUB_ADMIN_PASSWORD", "a quiet evening")
    call_command("ensure_admin")
    sign_up()
    assert administrators() == ["olive"]


def test_no_other_door_makes_one(
    single_sign_on: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the check that the server is reachable from here alone is bypassed."""
    monkeypatch.setattr(first_account, "serves_only_here", lambda: True)
    settings.SCIM_TOKEN = "t" * 32
    directory = Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {settings.SCIM_TOKEN}"})
    made = directory.post("/scim/v2/Users", {"userName": "dora"}, content_type="application/scim+json")
    assert made.status_code == 201 and administrators() == []
    sign_up("ada")
    User.objects.all().delete()
    go(Client(SERVER_NAME="localhost"), "sub-1", preferred_username="frida", email="f@example.org")
    assert User.objects.filter(username="frida").exists()
    sign_up("bea")
    assert administrators() == []


def test_what_is_refused_makes_nobody_the_first() -> None:
    client = Client(SERVER_NAME="localhost")
    client.post(SIGN_UP, {"username": "ada", "password1": PASSWORD, "password2": "another"})
    assert not User.objects.exists()
    sign_up("bea")
    assert administrators() == ["bea"]


def test_no_page_of_somebody_elses_signs_anybody_up() -> None:
    client = Client(SERVER_NAME="localhost", enforce_csrf_checks=True)
    form = {"username": "mallory", "password1": PASSWORD, "password2": PASSWORD}
    client.get(SIGN_UP)
    token = client.cookies["csrftoken"].value
    origin = {"Origin": "https://evil.example"}
    assert client.post(SIGN_UP, form).status_code == 403
    assert client.post(SIGN_UP, form | {"csrfmiddlewaretoken": token}, headers=origin).status_code == 403
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pause, others = Pause(), []
    asked = first_account.is_first_account

    def first_waits(request: Any) -> bool:
        return pause.after(asked)(request) if not pause.reached.is_set() else asked(request)

    monkeypatch.setattr(first_account, "is_first_account", first_waits)

    def another() -> None:
        others.append(Work(lambda: sign_up("bea")))
        assert others[0].waits_for_a_lock(), "two were looked at side by side"

    meanwhile(pause, lambda: sign_up("ada"), another)
    others[0].end()
    assert administrators() == ["ada"]
    assert User.objects.count() == 2
    connection.close()


def test_the_page_of_a_fresh_installation_creates_the_first_account(settings: Settings) -> None:
    client = Client(SERVER_NAME="localhost", SERVER_PORT="8000")
    greeting = client.get("/accounts/login/").content.decode()
    assert "Create the first account" in greeting
    assert "Welcome back" not in greeting and "Already have one?" not in greeting
    settings.SIGNUP_OPEN = False
    assert "Welcome back" in client.get("/accounts/login/").content.decode()
    settings.SIGNUP_OPEN = True
    form = {"username": "ada", "email": "ada@example.org", "password1": PASSWORD, "password2": PASSWORD}
    assert client.post("/accounts/login/", form).status_code == 302
    assert administrators() == ["ada"]
    later = Client(SERVER_NAME="localhost", SERVER_PORT="8000").get("/accounts/login/")
    assert "Welcome back" in later.content.decode()
