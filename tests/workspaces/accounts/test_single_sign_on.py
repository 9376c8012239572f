"""Single sign-on against an independent OpenID Connect provider, over real HTTP."""

from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import httpx
import oidc_provider_mock
import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib import admin
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from tests.api import error_of
from tests.factories import PASSWORD, make_user
from tests.rollback import rolled_back
from tests.workspaces.accounts.test_two_factor import turn_on
from workspaces.models import AuditEvent, User, Workspace

pytestmark = pytest.mark.django_db

CALLBACK = "/accounts/single-sign-on/with/sso/callback/"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def single_sign_on(settings: Any, provider: str) -> str:
    settings.OIDC = {
        "name": "Example Ltd",
        "client_id": "memoryhub",
        "secret": "of the test",
        "settings": {"server_url": provider, "oauth_pkce_enabled": True},
    }
    return provider


def go(client: Client, person: str, *, process: str = "login", **claims: object) -> Any:
    """Sign in as a browser does: the button, the provider's page, its redirect. Return the final page."""
    begun = client.post(f"{reverse('openid_connect_login', args=['sso'])}?process={process}", follow=True)
    address = begun.context["address"]
    assert escape(address) in begun.content.decode() and "code_challenge_method=S256" in address
    provider = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    with httpx.Client(verify=False) as browser:  # over plain HTTP: loading all authorities takes 50 ms
        browser.put(f"{provider}/users/{person}", json=claims).raise_for_status()
        back = browser.post(address, data={"sub": person}).headers["Location"]
    assert urlsplit(back).path == CALLBACK
    return client.get(f"{CALLBACK}?{urlsplit(back).query}", follow=True)


def signed_in_as(client: Client) -> str | None:
    found = client.session.get("_auth_user_id")
    return User.objects.get(pk=found).username if found else None


def test_who_comes_gets_an_account_once_and_comes_back_to_it(single_sign_on: str, settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    assert "Continue with Example Ltd" in Client().get("/accounts/login/").content.decode()
    client, again = Client(), Client()
    claims = {
        "preferred_username": "frida",
        "email": "frida@example.org",
        "email_verified": True,
        "phone_number": "1",
    }
    assert go(client, "sub-1", **claims).status_code == 200
    assert signed_in_as(client) == "frida"
    go(again, "sub-1", **claims | {"preferred_username": "renamed"})
    assert signed_in_as(again) == "frida"
    account = SocialAccount.objects.get()
    assert (account.uid, SocialToken.objects.count()) == ("sub-1", 0)
    assert set(account.extra_data) == {"preferred_username", "email"}  # no other claims
    noted = AuditEvent.objects.filter(verb="signed_in").latest("pk")
    assert noted.details["single_sign_on"] is True


def test_an_address_that_is_here_opens_nobodys_account(single_sign_on: str) -> None:
    """The provider's verification does not help: here the address was never verified."""
    User.objects.filter(pk=make_user("olive").pk).update(email="olive@example.org")
    client = Client()
    page = go(client, "thief", preferred_username="olive", email="olive@example.org", email_verified=True)
    assert signed_in_as(client) is None
    assert "is already taken here" in page.content.decode()
    made = client.post(page.request["PATH_INFO"], {"username": "thief-of-names", "email": ""}, follow=True)
    assert (made.status_code, signed_in_as(client)) == (200, "thief-of-names")


def test_a_name_that_looks_like_anothers_is_given_to_nobody(single_sign_on: str) -> None:
    make_user("alice")
    client = Client()
    go(client, "sub-2", preferred_username="a1ice", email="a@example.org")
    name = signed_in_as(client)
    assert name and name not in ("a1ice", "alice")


ADDRESSES: list[tuple[str, object, bool]] = [
    ("a@example.org", True, True),
    ("a@EXAMPLE.ORG", True, True),
    ("a@example.org", False, False),
    ("a@example.org", "true", False),
    ("a@example.org.evil.com", True, False),
    ("a@sub.example.org", True, False),
    ("a@evil.com", True, False),
]


def test_only_verified_addresses_of_the_domains_come_in(single_sign_on: str, settings: Any) -> None:
    settings.OIDC_DOMAINS = ["example.org"]
    for address, verified, comes in rolled_back(ADDRESSES):
        client = Client()
        page = go(client, "sub-3", preferred_username="dora", email=address, email_verified=verified)
        expected = ("dora", 200) if comes else (None, 403)
        assert (signed_in_as(client), page.status_code) == expected, (address, verified)


def test_an_account_is_connected_by_its_person_alone_and_disconnected(single_sign_on: str) -> None:
    olive = make_user("olive")
    client = Client()
    client.force_login(olive)
    asked = go(client, "sub-5", process="connect", email="elsewhere@example.org")
    # An open session is not enough.
    assert (asked.request["PATH_INFO"], SocialAccount.objects.count()) == ("/accounts/reauthenticate/", 0)
    client.post(asked.redirect_chain[-1][0], {"password": PASSWORD}, follow=True)
    account = SocialAccount.objects.get(user=olive)
    other = Client()
    go(other, "sub-5", email="elsewhere@example.org")
    assert signed_in_as(other) == "olive"
    page = reverse("socialaccount_connections")
    assert "elsewhere@example.org" in client.get(page).content.decode()
    stranger = Client()
    stranger.force_login(make_user("stranger"))
    stranger.post(page, {"account": account.pk})
    assert SocialAccount.objects.exists()
    client.post(page, {"account": account.pk})
    assert not SocialAccount.objects.exists()
    assert set(AuditEvent.objects.values_list("verb", flat=True)) >= {
        "sign_on_connected",
        "sign_on_disconnected",
    }


def test_where_passwords_are_off_no_password_opens_the_door_but_in_an_emergency(
    single_sign_on: str, settings: Any
) -> None:
    olive, boss = make_user("olive"), make_user("boss", is_staff=True, is_superuser=True)
    make_user("helper", is_staff=True)
    turn_on(make_user("careful", is_staff=True, is_superuser=True))
    settings.PASSWORD_SIGN_IN = False

    def typed(name: str, password: str = PASSWORD) -> tuple[str | None, str]:
        client = Client()
        page = client.post("/accounts/login/", {"login": name, "password": password}, follow=True)
        return signed_in_as(client), page.request["PATH_INFO"]

    page = Client().get("/accounts/login/").content.decode()
    assert (
        "Continue with Example Ltd" in page and 'name="password"' not in page and "Create account" not in page
    )
    assert {typed(name)[0] for name in ("olive", "boss", "helper", "careful")} == {None}
    for name in ("olive", "helper", "nobody"):
        with pytest.raises(CommandError):
            call_command("let_in_by_password", name)
    for name in ("boss", "careful"):
        call_command("let_in_by_password", name, stdout=StringIO())
    assert 'name="password"' in Client().get("/accounts/login/").content.decode()
    assert (typed("boss")[0], typed("olive")[0], typed("boss", "wrong")[0]) == ("boss", None, None)
    assert typed("careful") == (None, "/accounts/two-factor/authenticate/")
    assert AuditEvent.objects.filter(verb="password_let_in", target=boss.public_id).count() == 1
    cache.clear()
    assert typed("boss")[0] is None, "for a quarter of an hour"
    inside = Client()
    SocialAccount.objects.create(user=olive, provider="sso", uid="sub-8")
    go(inside, "sub-8", email="olive@example.org")
    assert inside.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302
    with pytest.raises(CommandError, match="Everybody"):
        settings.PASSWORD_SIGN_IN = True
        call_command("let_in_by_password", "boss")


def test_two_factor_sign_in_is_asked_for_after_it(single_sign_on: str) -> None:
    olive = make_user("olive")
    turn_on(olive)
    SocialAccount.objects.create(user=olive, provider="sso", uid="sub-6")
    client = Client()
    page = go(client, "sub-6", email="olive@example.org")
    assert (signed_in_as(client), page.request["PATH_INFO"]) == (None, "/accounts/two-factor/authenticate/")


def test_an_old_session_proves_nobody(single_sign_on: str) -> None:
    """allauth treats the session of a user without a password as fresh, however old it is."""
    client = Client()
    go(client, "sub-7", preferred_username="frida", email="frida@example.org")

    def make_key(name: str) -> Any:
        body = {"name": name, "workspace_id": Workspace.objects.get().public_id, "scope": "read"}
        return client.post("/chat/api/keys", body, content_type="application/json")

    assert make_key("one").status_code == 201
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 3600
    session.save()
    refused = make_key("two")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "reauthenticate")
    new = {"password1": PASSWORD, "password2": PASSWORD}
    for page in ("/accounts/password/set/", "/accounts/email/", "/accounts/two-factor/totp/activate/"):
        answer = client.post(page, new)
        assert (answer.status_code, "Sign in once more" in answer.content.decode()) == (403, True), page
    assert not User.objects.get().has_usable_password()
    go(client, "sub-7", email="frida@example.org")
    assert client.post("/accounts/password/set/", new).status_code == 302


def test_what_no_person_is_called_is_no_error_of_ours(single_sign_on: str) -> None:
    people: list[tuple[str, dict[str, object]]] = [
        ("s" * 300, {}),
        ("n1", {"preferred_username": "x\x00y"}),
        ("n2", {"preferred_username": 12}),
        ("n3", {"email": ["x@example.org"]}),
        ("n4", {"family_name": "f\x00"}),
        ("n5", {"email": "q@example.org", "email_verified": []}),
    ]
    for sub, claims in rolled_back(people):
        assert go(Client(), sub, **claims).status_code in (200, 502), claims


def test_a_provider_that_is_away_is_said(single_sign_on: str, settings: Any) -> None:
    settings.OIDC = settings.OIDC | {"settings": {"server_url": "http://127.0.0.1:9"}}
    answer = Client().post(reverse("openid_connect_login", args=["sso"]))
    assert (answer.status_code, "Single sign-on failed" in answer.content.decode()) == (502, True)
    forged = Client().get(CALLBACK, {"code": "x", "state": "of nobody"})
    assert forged.status_code < 500 and "Single sign-on failed" in forged.content.decode()


def test_without_one_there_is_no_door() -> None:
    assert "Continue with" not in Client().get("/accounts/login/").content.decode()
    assert Client().post(reverse("openid_connect_login", args=["sso"])).status_code == 404
    assert Client().get(CALLBACK).status_code == 404
    assert not [model for model in admin.site._registry if model._meta.app_label == "socialaccount"]
