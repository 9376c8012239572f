"""Authorizations of programs end with a new password: a person who knew the old one may have made them."""

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from tests.conftest import Cast
from tests.factories import PASSWORD, make_key_text
from tests.rollback import rolled_back
from tests.workspaces.oauth.programs import (
    address,
    browser_of,
    client_id,
    consent,
    exchange,
    opens,
    refresh,
    said_in,
    signed_in,
)
from workspaces.accounts.account_changes import change_password
from workspaces.models import ApiKey, AuditEvent, User

pytestmark = pytest.mark.django_db
NEW = "a quiet evening"


def on_the_page(person: User, by: User) -> None:
    client = Client()
    client.force_login(person)
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert client.post("/accounts/password/change/", form).status_code == 302


def by_an_administrator(person: User, by: User) -> None:
    change_password(person, keep=None, by=by, now=timezone.now())


def by_command(person: User, by: User) -> None:
    call_command("changepassword", person.username, verbosity=0)


def test_a_new_password_ends_what_programs_were_let_do(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda *args, **more: NEW)
    cast.editor.set_password(PASSWORD)
    cast.editor.save()
    for change in rolled_back([on_the_page, by_an_administrator, by_command]):
        got, others = signed_in(cast.editor, cast.workspace), signed_in(cast.owner, cast.workspace)
        key = make_key_text(cast.editor, cast.workspace)
        program = client_id()
        agreed = said_in(consent(browser_of(cast.editor), address(program), cast.workspace))["code"]
        change(cast.editor, cast.owner)
        assert opens(got["access_token"]) == 401, change
        assert refresh(got["client_id"], got["refresh_token"]).status_code == 400, change
        assert exchange(program, agreed).status_code == 400, "nor what was agreed to a moment before"
        assert opens(key) == 406, "a key that the person made by hand stands in their list, and stays"
        assert opens(others["access_token"]) == 406, change
        ended = ApiKey.objects.get(user=cast.editor, client__public_id=got["client_id"])
        noted = AuditEvent.objects.filter(verb="key_revoked").values_list("target", "by_name")
        assert list(noted) == [(ended.public_id, "olive" if change is by_an_administrator else "eddie")], (
            change
        )
        assert AuditEvent.objects.filter(verb="password_changed").count() == 1, change
