"""Signing in by GitHub, GitLab and Google, where anyone may have an account; against a fake server."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.google.views import GoogleOAuth2Adapter
from django.test import Client
from django.urls import reverse

from tests.factories import make_user
from tests.fakes.oauth_providers import CLIENT, SECRET, OAuthProviders
from tests.migrated import ROOT, environment
from tests.rollback import rolled_back
from tests.workspaces.accounts.test_single_sign_on import signed_in_as
from workspaces.models import AuditEvent, GroupGrant, User

pytestmark = pytest.mark.django_db
NAMES = {"github": "GitHub", "gitlab": "GitLab", "google": "Google"}


@pytest.fixture(scope="module")
def server() -> Iterator[OAuthProviders]:
    server = OAuthProviders().start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def providers(server: OAuthProviders, settings: Any, monkeypatch: pytest.MonkeyPatch) -> OAuthProviders:
    app = {"client_id": CLIENT, "secret": SECRET, "settings": {"oauth_pkce_enabled": True}}
    settings.OAUTH = {name: {"name": label, **app} for name, label in NAMES.items()}
    settings.SOCIALACCOUNT_PROVIDERS = {"gitlab": {"GITLAB_URL": server.url}}
    addresses = {"authorize_url": "/login/oauth/authorize", "access_token_url": "/login/oauth/access_token"}
    addresses |= {"profile_url": "/api/v3/user", "emails_url": "/api/v3/user/emails"}
    for name, path in addresses.items():
        monkeypatch.setattr(GitHubOAuth2Adapter, name, server.url + path)
    for name, path in {
        "authorize_url": "/auth",
        "access_token_url": "/token",
        "identity_url": "/info",
    }.items():
        monkeypatch.setattr(GoogleOAuth2Adapter, name, server.url + path)
    return server


def says(provider: str, *, id: Any = 1, name: str = "frida", email: Any = None, verified: Any = True) -> Any:
    """Return a person's data for each address of the provider."""
    if provider == "github":
        emails = [{"email": email, "primary": True, "verified": verified}] if email else []
        public = {"id": id, "login": name, "email": None, "company": "Helpdesk", "bio": "1"}
        return {"/api/v3/user": public, "/api/v3/user/emails": emails}
    if provider == "gitlab":
        confirmed = "2026-01-01T00:00:00Z" if verified else None
        own = {"id": id, "username": name, "email": email, "confirmed_at": confirmed}
        return {"/api/v4/user": own | {"company": "Helpdesk"}}
    return {
        "/info": {
            "id": str(id),
            "given_name": name,
            "email": email,
            "verified_email": verified,
            "company": "Helpdesk",
        }
    }


def go(client: Client, provider: str, *, process: str = "login", status: int = 200, **person: Any) -> Any:
    """Sign in as a browser does: the button, the provider's page, its redirect. Return the final page."""
    begun = client.post(f"{reverse(f'{provider}_login')}?process={process}", follow=True)
    address = begun.context["address"]
    server: OAuthProviders = person.pop("at")
    assert address.startswith(server.url)
    told = person.pop("told", None) or says(provider, **person)
    back = server.allow(address, told, status)
    return client.get(f"/accounts/single-sign-on/with/{provider}/callback/?{back}", follow=True)


def test_who_comes_gets_an_account_once_and_comes_back_to_it(server: OAuthProviders) -> None:
    page = Client().get("/accounts/login/").content.decode()
    assert all(
        f"Continue with <bdi>{label}" in page or f"Continue with {label}" in page for label in NAMES.values()
    )
    for provider in rolled_back(NAMES):
        client, again = Client(), Client()
        assert go(client, provider, at=server, email="frida@example.org").status_code == 200
        assert signed_in_as(client) == "frida", provider
        go(again, provider, at=server, name="renamed", email="other@example.org")
        assert signed_in_as(again) == "frida", provider
        account = SocialAccount.objects.get()
        assert (account.provider, account.uid, SocialToken.objects.count()) == (provider, "1", 0)
        assert set(account.extra_data) <= {"preferred_username", "email"}  # no other data of the profile
        assert EmailAddress.objects.get().verified
        assert AuditEvent.objects.filter(verb="signed_in").latest("pk").details["single_sign_on"] is True


def test_the_same_number_elsewhere_is_somebody_else(server: OAuthProviders) -> None:
    first, second = Client(), Client()
    go(first, "github", at=server, id=7, name="gina")
    go(second, "gitlab", at=server, id=7, name="gustav")
    assert (signed_in_as(first), signed_in_as(second)) == ("gina", "gustav")


def test_where_sign_up_is_closed_nobody_new_comes_by_what_is_open_to_all(
    server: OAuthProviders, settings: Any
) -> None:
    settings.OAUTH_SIGNUP = False
    for provider in rolled_back(NAMES):
        client = Client()
        page = go(client, provider, at=server, email="frida@example.org")
        assert (signed_in_as(client), "Sign-up is closed" in page.content.decode()) == (None, True), provider
        assert not User.objects.exists() and not SocialAccount.objects.exists()
        olive, again = make_user("olive"), Client()
        SocialAccount.objects.create(user=olive, provider=provider, uid="1")
        go(again, provider, at=server)
        assert signed_in_as(again) == "olive", f"who connected it before: {provider}"


ADDRESSES: list[tuple[str | None, bool, bool]] = [
    ("a@example.org", True, True),
    ("a@EXAMPLE.ORG", True, True),
    ("a@example.org", False, False),
    ("a@example.org.evil.com", True, False),
    ("a@evil.com", True, False),
    (None, True, False),
]


def test_only_verified_addresses_of_the_domains_come_in(server: OAuthProviders, settings: Any) -> None:
    """The check applies to existing users too: leaving the company ends their access."""
    settings.OAUTH_DOMAINS, settings.OIDC_DOMAINS = ["example.org"], ["elsewhere.org"]
    one_each = product(("gitlab", "google"), (ADDRESSES[0], ADDRESSES[2]))
    for provider, (address, verified, comes) in rolled_back([*product(["github"], ADDRESSES), *one_each]):
        client, case = Client(), (provider, address, verified)
        page = go(client, provider, at=server, name="dora", email=address, verified=verified)
        assert (signed_in_as(client), page.status_code) == (("dora", 200) if comes else (None, 403)), case
        if comes:
            later = Client()
            assert go(later, provider, at=server, email="a@evil.com").status_code == 403, case
            assert signed_in_as(later) is None, case


def test_an_address_that_is_here_opens_nobodys_account(server: OAuthProviders, settings: Any) -> None:
    """An account that the company's directory created for its own provider's users is safe as well."""
    settings.SCIM_TOKEN = "of the directory alone " * 2
    made = make_user("olive")
    made.set_unusable_password()
    made.email = "olive@example.org"
    made.save()
    EmailAddress.objects.create(user=made, email="olive@example.org", verified=True, primary=True)
    client = Client()
    page = go(client, "github", at=server, name="olive", email="olive@example.org")
    assert signed_in_as(client) is None and "is already taken here" in page.content.decode()


def test_whose_address_is_taken_chooses_no_colleagues(server: OAuthProviders, settings: Any) -> None:
    settings.OAUTH_DOMAINS = ["example.org"]
    both = make_user("olive", email="m@example.org")
    EmailAddress.objects.create(user=both, email="m@example.org", verified=True, primary=True)
    client, sign_up = Client(), reverse("socialaccount_signup")
    go(client, "github", at=server, name="mallory", email="m@example.org")
    page = client.post(sign_up, {"username": "mallory", "email": "boss@example.org"})
    assert "verified where you signed in" in page.content.decode() and signed_in_as(client) is None
    client.post(sign_up, {"username": "mallory", "email": ""})
    assert signed_in_as(client) == "mallory" and EmailAddress.objects.get().user == both


def test_nothing_that_people_write_about_themselves_is_a_group(server: OAuthProviders, settings: Any) -> None:
    settings.SSO_GROUPS_CLAIM, settings.SSO_GROUPS = "company", {"Helpdesk": ["staff"]}
    for provider in NAMES:
        client = Client()
        go(client, provider, at=server, name=f"climber-{provider}")
        assert signed_in_as(client) == f"climber-{provider}"
    assert not User.objects.filter(is_staff=True).exists() and not GroupGrant.objects.exists()


USER, EMAILS = "/api/v3/user", "/api/v3/user/emails"


def test_the_name_that_people_write_there_is_nobody_elses(server: OAuthProviders) -> None:
    make_user("olive")
    names = [
        ("Frida Kahlo", "Frida Kahlo"),
        ("Olive", "mallory"),
        ("0live", "mallory"),
        ("evil\u202eo", "mallory"),
        ("\u3164", "mallory"),
        ("Frida\nKahlo", "mallory"),
        ("\ud800", "mallory"),
        ("x" * 149 + " " + "y" * 149, "mallory"),
    ]
    for written, shown in rolled_back(names):
        told = {USER: {"id": 1, "login": "mallory", "name": written}, EMAILS: []}
        go(Client(), "github", at=server, told=told)
        assert User.objects.get(username="mallory").shown_name == shown, ascii(written)


STRANGE: list[Any] = [
    {USER: {}, EMAILS: []},
    {USER: [], EMAILS: []},
    {USER: "<h1>Unicorn</h1>", EMAILS: []},
    {USER: {"id": "x\x00y", "login": "x"}, EMAILS: []},
    {USER: {"id": "9" * 300, "login": "x"}, EMAILS: []},
    {USER: {"id": 1, "login": "x\x00y"}, EMAILS: [{"email": "a@example.org"}]},
    {USER: {"id": 1, "login": ["x"]}, EMAILS: {"message": "no"}},
    {
        USER: {"id": 1, "login": "x" * 9000},
        EMAILS: [{"email": "x\x00@example.org", "primary": 1, "verified": 1}],
    },
    {USER: {"id": 1, "login": "x"}},
]


def test_what_no_person_is_called_is_no_error_of_ours(server: OAuthProviders) -> None:
    for told in rolled_back(STRANGE):
        assert go(Client(), "github", at=server, told=told).status_code in (200, 401, 502), told


def test_a_provider_that_fails_lets_nobody_in(server: OAuthProviders) -> None:
    for provider in NAMES:
        client = Client()
        page = go(client, provider, at=server, status=500)
        assert (signed_in_as(client), "Single sign-on failed" in page.content.decode()) == (None, True)
        callback = reverse(f"{provider}_callback")
        for query in ({"code": "x", "state": "of nobody"}, {"error": "access_denied"}, {}):
            answer = Client().get(callback, query)
            assert answer.status_code < 500 and signed_in_as(client) is None, (provider, query)


def test_without_one_there_is_no_door(settings: Any) -> None:
    settings.OAUTH = {}
    assert "Continue with" not in Client().get("/accounts/login/").content.decode()
    for provider in NAMES:
        assert Client().post(reverse(f"{provider}_login")).status_code == 404
        assert Client().get(reverse(f"{provider}_callback")).status_code == 404
        assert Client().get(reverse(f"{provider}_login")).status_code == 405


ASK = """
from django.conf import settings
print([*settings.OAUTH], settings.SOCIALACCOUNT_PROVIDERS, settings.OAUTH_DOMAINS, settings.OAUTH_SIGNUP)
"""
ADDRESS = """
import django; django.setup()
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
print(GitHubOAuth2Adapter.emails_url)
"""


def test_what_is_set_is_what_is_asked(tmp_path: Path) -> None:
    def asked(code: str = ASK, **env: str) -> str:
        given = {f"MEMORYHUB_{name}": value for name, value in env.items()}
        given["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
        command, place = [sys.executable, "-c", code], environment(tmp_path, **given)
        done = subprocess.run(command, cwd=ROOT, env=place, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr.splitlines()[-1]

    client = {"OAUTH_GITHUB_CLIENT_ID": "x", "OAUTH_GITHUB_CLIENT_SECRET": "y"}
    own = "https://git.example.org"
    assert asked(ADDRESS, **client, OAUTH_GITHUB_URL=own) == f"{own}/api/v3/user/emails"
    assert asked(**client, PASSWORD_SIGN_IN="off", SIGNUP_OPEN="off") == "['github'] {} [] False"
    assert asked(**client, SIGNUP_OPEN="off", OAUTH_DOMAINS="@Example.org").endswith("['example.org'] True")
    mail = {"SMTP_URL": "smtp://localhost", "SIGNUP_DOMAINS": "example.org"}
    assert asked(**client, **mail).endswith("['example.org'] True")
    assert "MEMORYHUB_OAUTH_GITHUB_CLIENT_SECRET go together" in asked(OAUTH_GITHUB_CLIENT_ID="x")
    assert "MEMORYHUB_PASSWORD_SIGN_IN=off needs single sign-on" in asked(PASSWORD_SIGN_IN="off")
