"""API keys: created once, stored as a hash, counted, revoked; and their permissions."""

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.utils import timezone

from memories.judging.secret_filter import find_secret
from memoryhub.errors import Invalid, NotFound
from tests.admin_pages import run_action
from tests.api import V1, Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import PASSWORD, make_key_text, make_memory, make_user
from workspaces.access import default_workspace
from workspaces.accounts import keys
from workspaces.models import ApiKey, KeyScope, Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 7, 12, 0, 20, tzinfo=UTC)
MAKE, PROFILE = "/profile/keys/", "/profile/"


def make(by: User, workspace: Workspace, **fields: Any) -> tuple[ApiKey, str]:
    given = {"name": "Script", "scope": KeyScope.WRITE, "expires_at": None, "now": NOON} | fields
    return keys.make_key(workspace, by=by, **given)


# Creating, checking, revoking


def test_a_key_is_found_by_its_text_and_stored_as_a_hash(cast: Cast) -> None:
    key, text = make(cast.editor, cast.workspace)
    assert re.fullmatch(r"mh_[A-Za-z0-9]{43}", text)
    assert keys.verify_key(text, now=NOON) == key
    stored = " ".join(str(value) for value in ApiKey.objects.values_list()[0])
    assert text not in stored and text[10:] not in stored
    assert make(cast.editor, cast.workspace, name="Another")[1] != text


def test_our_own_secret_filter_knows_a_key(cast: Cast) -> None:
    _, text = make(cast.editor, cast.workspace)
    finding = find_secret(f"my key is {text}")
    assert finding is not None and finding.kind == "memoryhub"


def test_what_is_no_key_is_refused(cast: Cast) -> None:
    make(cast.editor, cast.workspace)
    for wrong in ("", "mh_", "mh_" + "a" * 43, "mh_" + "é" * 43, "sk-" + "a" * 43, "\0", "mh_\n"):
        with pytest.raises(keys.KeyRefused, match="no such"):
            keys.verify_key(wrong, now=NOON)


def test_expired_and_revoked_keys_and_those_of_closed_accounts_are_refused(cast: Cast) -> None:
    key, text = make(cast.editor, cast.workspace, expires_at=NOON + timedelta(days=1))
    assert keys.verify_key(text, now=NOON + timedelta(hours=23)) == key
    with pytest.raises(keys.KeyRefused, match="expired"):
        keys.verify_key(text, now=NOON + timedelta(days=1))
    User.objects.filter(pk=cast.editor.pk).update(is_active=False)
    with pytest.raises(keys.KeyRefused, match="no such"):
        keys.verify_key(text, now=NOON)
    User.objects.filter(pk=cast.editor.pk).update(is_active=True)
    keys.revoke_key(key.public_id, by=cast.editor, now=NOON)
    keys.revoke_key(key.public_id, by=cast.editor, now=NOON + timedelta(days=9))
    key.refresh_from_db()
    assert key.revoked_at == NOON
    with pytest.raises(keys.KeyRefused, match="revoked"):
        keys.verify_key(text, now=NOON)


def test_keys_are_made_within_ones_role_and_rules(cast: Cast) -> None:
    for by, fields, field in (
        (cast.viewer, {"scope": "write"}, "scope"),
        (cast.editor, {"scope": "admin"}, "scope"),
        (cast.editor, {"name": "  "}, "name"),
        (cast.editor, {"name": "x" * 81}, "name"),
        (cast.editor, {"name": "a\0b"}, "name"),
        (cast.editor, {"expires_at": NOON}, "expires_at"),
    ):
        with pytest.raises(Invalid) as refused:
            make(by, cast.workspace, **fields)
        assert list(refused.value.fields) == [field]
    with pytest.raises(NotFound):
        make(cast.stranger, cast.workspace)
    assert not ApiKey.objects.exists()


def test_a_name_is_free_again_once_its_key_is_revoked(cast: Cast) -> None:
    first, _ = make(cast.editor, cast.workspace)
    with pytest.raises(Invalid) as refused:
        make(cast.editor, default_workspace(cast.editor))
    assert list(refused.value.fields) == ["name"]
    make(cast.owner, cast.workspace)
    keys.revoke_key(first.public_id, by=cast.editor, now=NOON)
    make(cast.editor, cast.workspace)


# Counting


def test_so_many_requests_a_minute_pass(cast: Cast, settings: Any) -> None:
    settings.KEY_RATE = 3
    key, _ = make(cast.editor, cast.workspace)
    other, _ = make(cast.owner, cast.workspace)
    assert [keys.count_request(key, now=NOON) for _ in range(5)] == [None, None, None, 40, 40]
    assert keys.count_request(other, now=NOON) is None
    assert keys.count_request(key, now=NOON + timedelta(seconds=39)) == 1
    assert keys.count_request(key, now=NOON + timedelta(seconds=40)) is None
    # A process with a slow clock counts into the minute that has begun.
    assert [keys.count_request(key, now=NOON) for _ in range(3)] == [None, None, 40]


def test_the_last_use_is_written_once_a_minute(cast: Cast) -> None:
    key, _ = make(cast.editor, cast.workspace)
    for seconds, noted in ((0, 0), (30, 0), (70, 70)):
        keys.count_request(key, now=NOON + timedelta(seconds=seconds))
        key.refresh_from_db()
        assert key.last_used_at == NOON + timedelta(seconds=noted)


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_over_connections(settings: Any) -> None:
    settings.KEY_RATE = 7
    person = make_user()
    key, _ = make(person, default_workspace(person))

    def ask(_: int) -> int | None:
        try:
            return keys.count_request(key, now=NOON)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(20))).count(None) == 7


def test_too_many_requests_are_told_when_to_come_again(cast: Cast, settings: Any) -> None:
    settings.KEY_RATE = 2
    api = Api(base=V1, key=make_key_text(cast.editor, cast.workspace))
    answers = [api.get("memories") for _ in range(5)]
    codes = [answer.status_code for answer in answers]
    assert codes in ([200, 200, 429, 429, 429], [200, 200, 200, 200, 429])  # a minute may end in between
    assert error_of(answers[-1])["code"] == "too_many_requests"
    assert 1 <= int(answers[-1]["Retry-After"]) <= 60
    session = Api(cast.editor, base=V1)
    assert {session.get("memories").status_code for _ in range(5)} == {200}


# Permissions of a request with a key


def test_refused_keys_are_told_why_and_how_to_sign_in(cast: Cast) -> None:
    answer = Api(base=V1, key="mh_" + "a" * 43).get("memories")
    assert (answer.status_code, error_of(answer)["code"]) == (401, "bad_key")
    assert answer["WWW-Authenticate"].startswith("Bearer")
    for header in ("Bearer", "Bearer ", "Bearer a b", "Bearer \xe9", "bearer " + "x" * 5000):
        sent = Client(headers={"authorization": header}).get("/api/v1/memories")
        assert (sent.status_code, error_of(sent)["code"]) == (401, "bad_key"), header


def test_a_session_never_helps_a_bad_key_nor_adds_to_a_good_one(cast: Cast) -> None:
    bad = Api(cast.owner, base=V1, key="mh_" + "a" * 43)
    assert bad.get("memories").status_code == 401
    good = Api(cast.owner, base=V1, key=make_key_text(cast.viewer, cast.workspace, scope=KeyScope.READ))
    type_password_again(good.client)
    assert good.post("memories", {"value": "Cats purr"}).status_code == 403
    memory = make_memory("Cats purr", cast.owner, cast.workspace)
    refused = good.delete(f"memories/{memory.public_id}")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "session_only")


def test_a_key_needs_no_csrf_token_and_a_session_does(cast: Cast) -> None:
    key = make_key_text(cast.editor, cast.workspace)
    body: Any = {"data": {"value": "Cats purr"}, "content_type": "application/json"}
    strict = Client(enforce_csrf_checks=True)
    sent = strict.post("/api/v1/memories", **body, headers={"authorization": f"Bearer {key}"})
    assert sent.status_code == 201
    strict.force_login(cast.editor)
    assert error_of(strict.post("/api/v1/memories", **body))["code"] == "csrf"


def test_a_key_is_never_more_than_its_makers_role(cast: Cast) -> None:
    api = Api(base=V1, key=make_key_text(cast.editor, cast.workspace))
    membership = Membership.objects.get(user=cast.editor, workspace=cast.workspace)
    membership.role = Role.VIEWER
    membership.save()
    assert api.post("memories", {"value": "Cats purr"}).status_code == 403
    assert api.post("memories", {"value": "Cats purr", "scope": "global"}).status_code == 403
    assert api.get("memories").status_code == 200
    membership.delete()
    assert api.get("memories").status_code == 404
    User.objects.filter(pk=cast.editor.pk).update(is_active=False)
    assert api.get("memories").status_code == 401


def test_no_key_is_written_to_a_log(cast: Cast, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good, bad = make_key_text(cast.editor, cast.workspace), "mh_" + "Z" * 43
    for text in (good, bad):
        api = Api(base=V1, key=text)
        api.client.raise_request_exception = False
        api.get("memories")
        api.post("memories", {"value": f"My key is {text}"})
        api.raw("POST", "memories", b"{")
        api.delete("memories", {"ids": ["mem_x"]})
        assert text not in caplog.text


# The profile page


@pytest.fixture
def client(cast: Cast) -> Client:
    """The editor's client, signed in a while ago."""
    client = Client()
    client.force_login(cast.editor)
    return client


def form(cast: Cast, **changes: str) -> dict[str, str]:
    given = {"name": "Script", "workspace": cast.workspace.public_id, "scope": "write", "expires_at": "90"}
    return given | changes


def test_making_a_key_asks_for_the_password_and_shows_it_once(client: Client, cast: Cast) -> None:
    asked = client.post(MAKE, form(cast))
    assert asked.status_code == 302 and asked["Location"].startswith("/accounts/reauthenticate/")
    assert not ApiKey.objects.exists()
    assert "You are about to create an API key." in client.get(asked["Location"]).content.decode()
    wrong = client.post(asked["Location"], {"password": "wrong"})
    assert wrong.status_code == 200 and not ApiKey.objects.exists()
    shown = client.post(asked["Location"], {"password": PASSWORD})
    key = ApiKey.objects.get()
    texts = set(re.findall(r"mh_[A-Za-z0-9]{43}", shown.content.decode()))
    assert len(texts) == 1
    text = texts.pop()
    assert keys.verify_key(text, now=timezone.now()) == key
    assert (key.user, key.workspace, key.scope) == (cast.editor, cast.workspace, KeyScope.WRITE)
    assert key.expires_at is not None
    assert "no-store" in shown["Cache-Control"]
    later = client.get(PROFILE).content.decode()
    assert key.beginning in later and text not in later
    assert not any(text in str(session.get_decoded()) for session in Session.objects.all())


def test_the_form_sent_once_more_makes_no_second_key(client: Client, cast: Cast) -> None:
    type_password_again(client)
    assert client.post(MAKE, form(cast)).status_code == 200
    again = client.post(MAKE, form(cast))
    assert again.status_code == 422
    assert "already have a key with this name" in again.content.decode()
    assert ApiKey.objects.count() == 1


def test_revoking_takes_the_key_off_the_page(client: Client, cast: Cast) -> None:
    key, text = make(cast.editor, cast.workspace)
    answer = client.post(f"/profile/keys/{key.public_id}/revoke/", follow=True)
    page = answer.content.decode()
    assert "“Script” has been revoked" in page and key.beginning not in page
    assert Api(base=V1, key=text).get("memories").status_code == 401


# The admin


def test_the_admin_revokes_keys_and_shows_none(cast: Cast) -> None:
    key, text = make(cast.editor, cast.workspace)
    admin = Client()
    admin.force_login(make_user("root", is_staff=True, is_superuser=True))
    listed = "/admin/workspaces/apikey/"
    for path in (listed, f"{listed}{key.pk}/change/", f"{listed}?q={key.public_id}"):
        page = admin.get(path).content.decode()
        assert "Script" in page
        assert text not in page and key.key_hash not in page
    run_action(admin, listed, "revoke", key)
    with pytest.raises(keys.KeyRefused, match="revoked"):
        keys.verify_key(text, now=NOON)
    assert LogEntry.objects.get().object_repr == key.public_id


# REST


def test_over_rest_a_key_is_made_with_a_fresh_password_shown_once_listed_and_revoked(cast: Cast) -> None:
    api = Api(cast.editor)
    body = {"name": "Laptop", "workspace_id": cast.workspace.public_id, "scope": "write"}
    assert error_of(api.post("keys", body))["code"] == "reauthenticate"
    assert not ApiKey.objects.exists()
    type_password_again(api.client)
    made = api.post("keys", body)
    assert (made.status_code, made.json()["calls"]) == (201, 0)
    text, key_id = made.json()["key"], made.json()["id"]
    assert "no-store" in made["Cache-Control"]
    program = Api(base=V1, key=text)
    for _ in range(3):
        assert program.get("memories").status_code == 200
    [listed] = api.get("keys").json()["items"]
    assert (listed["id"], listed["scope"], listed["calls"]) == (key_id, "write", 3)
    assert listed["last_used_at"] and "key" not in listed and text not in str(listed)
    assert Api(cast.owner).get("keys").json()["items"] == []
    assert Api(cast.owner).delete(f"keys/{key_id}").status_code == 404
    assert api.delete(f"keys/{key_id}").status_code == 204
    assert program.get("memories").status_code == 401
    assert api.get("keys").json()["items"] == []
