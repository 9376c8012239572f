"""Sign-up by domain: a company address, verified before anything else is allowed."""

import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import PASSWORD, make_user
from tests.rollback import rolled_back
from tests.workspaces.accounts.test_single_sign_on import go, provider, signed_in_as, single_sign_on
from workspaces.models import User

__all__ = ["provider", "single_sign_on"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def by_domain(settings: Any) -> None:
    settings.SIGNUP_DOMAINS = ["example.org"]
    settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


def sign_up(client: Client, email: str) -> Any:
    form = {"username": "dora", "email": email, "password1": PASSWORD, "password2": PASSWORD}
    return client.post("/accounts/signup/", form, follow=True)


def sign_in(client: Client, name: str) -> str | None:
    client.post("/accounts/login/", {"login": name, "password": PASSWORD})
    return signed_in_as(client)


def test_other_addresses_do_not_sign_up() -> None:
    said = "Must be an address of example.org."
    for email in rolled_back(
        [
            "",
            "d@evil.com",
            "d@example.org.evil.com",
            "d@sub.example.org",
            "d@evil.com@example.org",
            "d@éxample.org",
        ]
    ):
        assert said in Client().get("/accounts/signup/").content.decode(), email
        assert sign_up(Client(), email).content.decode().count(said) <= 1, email
        assert not User.objects.filter(username="dora").exists(), email


def test_nothing_opens_before_the_link_that_was_mailed(mailoutbox: Any) -> None:
    client = Client()
    assert "Check your email" in sign_up(client, "Dora@EXAMPLE.org").content.decode()
    assert (signed_in_as(client), sign_in(Client(), "dora")) == (None, None)
    found = re.search(r"http://testserver(/accounts/confirm-email/\S+)", mailoutbox[0].body)
    assert found is not None
    assert mailoutbox[0].to == ["dora@example.org"]
    Client().post(found[1])
    assert sign_in(Client(), "dora") == "dora"


def test_who_came_otherwise_is_not_asked(single_sign_on: str) -> None:
    make_user("made-by-an-administrator", email="elsewhere@evil.com")
    assert sign_in(Client(), "made-by-an-administrator") == "made-by-an-administrator"
    client = Client()
    go(client, "sub-d", preferred_username="frida", email="frida@evil.com", email_verified=False)
    assert signed_in_as(client) == "frida"
