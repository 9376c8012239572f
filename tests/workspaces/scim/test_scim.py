"""SCIM 2.0 requests of directories: the RFC's examples, those of Entra ID and Okta, and invalid ones."""

import json
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core.cache import cache
from django.test import Client

from tests.conftest import Cast
from tests.factories import make_user, make_workspace
from tests.rollback import rolled_back
from tests.workspaces.accounts.test_single_sign_on import go, provider, signed_in_as, single_sign_on
from workspaces.models import AuditEvent, Membership, SignIn, User

__all__ = ["provider", "single_sign_on"]
pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-the-directory-long-enough"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
# RFC 7644, 3.3: the example of creating a user.
BJENSEN = {
    "schemas": [USER],
    "userName": "bjensen",
    "externalId": "bjensen",
    "name": {"formatted": "Ms. Barbara J Jensen III", "familyName": "Jensen", "givenName": "Barbara"},
    "emails": [{"value": "bjensen@example.com", "type": "work", "primary": True}],
}


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.SCIM_TOKEN = TOKEN
    cache.clear()


def ask(method: str, path: str, body: Any = None, *, token: str = TOKEN, **query: str) -> tuple[int, Any]:
    sent = body if isinstance(body, str) else json.dumps(body)
    answer = Client().generic(
        method,
        f"/scim/v2/{path}",
        "" if body is None else sent,
        content_type="application/scim+json",
        headers={"Authorization": f"Bearer {token}"},
        query_params=query or None,
    )
    assert answer["Content-Type"] == "application/scim+json", answer.content[:200]
    return answer.status_code, answer.json()


def patch(person: User | str, *operations: Any) -> tuple[int, Any]:
    ref = person if isinstance(person, str) else person.public_id
    return ask("PATCH", f"Users/{ref}", {"schemas": [PATCH], "Operations": list(operations)})


def test_the_examples_of_the_rfc(settings: Any) -> None:
    status, made = ask("POST", "Users", BJENSEN)
    assert (status, made["userName"], made["active"]) == (201, "bjensen", True)
    assert made["name"] == {"givenName": "Barbara", "familyName": "Jensen"}
    assert made["emails"] == [{"value": "bjensen@example.com", "primary": True}]
    assert made["meta"]["location"].endswith(f"/scim/v2/Users/{made['id']}")
    assert ask("POST", "Users", BJENSEN | {"userName": "BJensen"})[1]["scimType"] == "uniqueness"
    assert ask("POST", "Users", {"userName": "alice"})[0] == 201
    assert ask("POST", "Users", {"userName": "O'Neil@example.com"})[0] == 201
    assert ask("GET", "Users", filter='userName eq "o\'neil@example.com"')[1]["totalResults"] == 1
    assert ask("POST", "Users", {"userName": "a1ice"})[0] == 409, "it looks like another's"
    status, found = ask("GET", "Users", filter='userName eq "BJENSEN"')
    assert (found["totalResults"], found["Resources"][0]["id"]) == (1, made["id"])
    assert ask("GET", "Users", filter='userName eq "nobody"')[1]["totalResults"] == 0
    assert ask("GET", f"Users/{made['id']}")[1] == made
    replaced = BJENSEN | {"name": {"givenName": "Babs"}, "emails": [], "active": True}
    status, now = ask("PUT", f"Users/{made['id']}", replaced)
    assert (status, now["name"]["givenName"], now["name"]["familyName"], now["emails"]) == (
        200,
        "Babs",
        "",
        [],
    )
    assert not EmailAddress.objects.exists()
    person = User.objects.get(username="bjensen")
    assert not person.has_usable_password()
    assert ask("GET", "ServiceProviderConfig")[1]["patch"] == {"supported": True}
    assert ask("GET", "ResourceTypes")[1]["Resources"][0]["endpoint"] == "/Users"
    settings.SCIM_TOKEN = ""
    assert Client().get("/scim/v2/Users", headers={"Authorization": "Bearer "}).status_code == 404


def test_an_address_that_somebody_else_has_shown_to_be_theirs_is_said(cast: Cast) -> None:
    EmailAddress.objects.create(user=cast.owner, email="olive@example.com", verified=True, primary=True)
    taken = {"userName": "olive@example.com", "emails": [{"value": "Olive@example.com"}]}
    for status, said in (
        ask("POST", "Users", taken),
        patch(cast.editor, {"op": "replace", "path": "emails", "value": taken["emails"]}),
    ):
        assert (status, said["scimType"]) == (409, "uniqueness")
        assert "has this address" in said["detail"]
    assert not User.objects.filter(username="olive@example.com").exists()
    assert User.objects.get(pk=cast.editor.pk).email != "Olive@example.com"


def test_a_body_that_is_too_large_is_said(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert ask("POST", "Users", BJENSEN)[0] == 413


CHANGES: list[tuple[dict[str, Any], str, Any]] = [
    ({"op": "replace", "path": "active", "value": False}, "is_active", False),
    ({"op": "Replace", "path": "active", "value": "False"}, "is_active", False),  # Entra ID
    ({"op": "replace", "value": {"active": False}}, "is_active", False),  # Okta
    ({"op": "replace", "value": {f"{USER}:active": False}}, "is_active", False),
    ({"op": "Add", "path": "name.givenName", "value": "Eduard"}, "first_name", "Eduard"),
    ({"op": "replace", "path": 'emails[type eq "work"].value', "value": "e@x.org"}, "email", "e@x.org"),
    ({"op": "replace", "path": "emails", "value": [{"value": "e@x.org"}]}, "email", "e@x.org"),
    ({"op": "remove", "path": "name"}, "first_name", ""),
    ({"op": "replace", "path": "userName", "value": "edgar"}, "username", "edgar"),
    ({"op": "replace", "path": "displayName", "value": "Ed"}, "first_name", "Eddie"),
]


def test_a_patch_as_directories_send_it(cast: Cast) -> None:
    User.objects.filter(pk=cast.editor.pk).update(first_name="Eddie")
    for operation, field, expected in rolled_back(CHANGES):
        status, _ = patch(cast.editor, operation)
        assert (status, getattr(User.objects.get(pk=cast.editor.pk), field)) == (200, expected), operation


def test_who_is_deactivated_is_out_and_hands_over_and_comes_back(cast: Cast) -> None:
    browser = Client()
    browser.force_login(cast.owner)
    status, said = patch(cast.owner, {"op": "replace", "path": "active", "value": False})
    assert (status, said["active"], SignIn.objects.filter(user=cast.owner).count()) == (200, False, 0)
    assert browser.get("/profile/").status_code == 302
    assert Membership.objects.get(user=cast.editor, workspace=cast.workspace).role == "owner"
    assert set(AuditEvent.objects.filter(by_id="").values_list("verb", flat=True)) >= {
        "account_closed",
        "handed_over",
    }
    assert patch(cast.owner, {"op": "replace", "path": "active", "value": True})[1]["active"]
    assert ask("DELETE", f"Users/{cast.owner.public_id}")[0] == 501


def test_first_single_sign_on_opens_the_account_that_the_directory_made_for_the_same_person_alone(
    single_sign_on: str, settings: Any
) -> None:
    ask("POST", "Users", BJENSEN)
    thief = Client()
    go(thief, "thief", preferred_username="thief", email="bjensen@example.com", email_verified=False)
    assert signed_in_as(thief) != "bjensen"
    client = Client()
    go(client, "sub-b", preferred_username="barbara", email="bjensen@example.com", email_verified=True)
    assert signed_in_as(client) == "bjensen"
    other = Client()
    go(other, "sub-c", preferred_username="other", email="bjensen@example.com", email_verified=True)
    assert signed_in_as(other) != "bjensen", "opened once, by one"
    settings.SCIM_TOKEN = ""
    again = Client()
    go(again, "sub-b", email="bjensen@example.com", email_verified=True)
    assert signed_in_as(again) == "bjensen"


def test_a_superuser_is_changed_by_no_directory_and_the_last_one_never_closed(cast: Cast) -> None:
    boss = make_user("boss", is_superuser=True, is_staff=True)
    off = {"op": "replace", "path": "active", "value": False}
    mail = {"op": "replace", "path": "emails", "value": [{"value": "thief@example.org"}]}
    assert patch(boss, mail)[0] == 403
    assert patch(boss, off)[0] == 403
    make_user("second", is_superuser=True, is_staff=True)
    assert patch(boss, off)[0] == 200
    assert patch(boss, off | {"value": True})[0] == 403
    boss.refresh_from_db()
    assert (boss.is_active, boss.email) == (False, "")


def test_a_wrong_token_is_refused_and_counted(settings: Any) -> None:
    for wrong in ("", "x", TOKEN[:-1], f"{TOKEN}x", "é"):
        assert ask("GET", "Users", token=wrong)[0] == 401
    session = Client()
    session.force_login(make_user("boss", is_superuser=True))
    assert session.get("/scim/v2/Users").status_code == 401
    codes = [ask("GET", "Users", token="wrong")[0] for _ in range(8)]
    assert codes[-1] == 429
    assert ask("GET", "Users")[0] == 200, "who has the right one is not held up"


REFUSED: list[tuple[str, str, Any, int]] = [
    ("POST", "Users", "{", 400),
    ("POST", "Users", [], 400),
    ("POST", "Users", "[" * 100_000, 400),
    ("POST", "Users", {}, 400),
    ("POST", "Users", {"userName": ""}, 400),
    ("POST", "Users", {"userName": "a b"}, 400),
    ("POST", "Users", {"userName": "a\x00b"}, 400),
    ("POST", "Users", {"userName": "\ud800"}, 400),
    ("POST", "Users", {"userName": "x" * 151}, 400),
    ("POST", "Users", {"userName": {"a": 1}}, 400),
    ("POST", "Users", {"userName": "ok", "emails": "x"}, 400),
    ("POST", "Users", {"userName": "ok", "emails": [1]}, 400),
    ("POST", "Users", {"userName": "ok", "emails": [{"value": "no address"}]}, 400),
    ("POST", "Users", {"userName": "ok", "name": "x"}, 400),
    ("POST", "Users", {"userName": "ok", "active": "maybe"}, 400),
    ("POST", "Users", {"userName": "ok", "isSuperuser": True}, 400),
    ("PATCH", "Users/{id}", {"Operations": []}, 400),
    (
        "PATCH",
        "Users/{id}",
        {"Operations": [{"op": "replace", "path": "active", "value": False}] * 101},
        400,
    ),
    ("PATCH", "Users/{id}", {"Operations": [{"op": "drop", "path": "active"}]}, 400),
    ("PATCH", "Users/{id}", {"Operations": [{"op": "remove"}]}, 400),
    ("PATCH", "Users/{id}", {"Operations": [{"op": "remove", "path": "active"}]}, 400),
    (
        "PATCH",
        "Users/{id}",
        {"Operations": [{"op": "replace", "path": "is_superuser", "value": True}]},
        400,
    ),
    ("PATCH", "Users/{id}", {"Operations": [{"op": "replace", "path": ["a"], "value": True}]}, 400),
    ("GET", "Users/usr_aaaaaaaaaaaaaaaaaaaaaaaa", None, 404),
    ("GET", "Users/%00", None, 404),
    ("GET", "Schemas", None, 404),
    ("POST", "Bulk", {"Operations": []}, 404),
    ("GET", "Users?filter=userName%20sw%20%22a%22", None, 400),
    ("GET", "Users?filter=userName%20eq%20%22%00%22", None, 200),
    ("GET", "Users?startIndex=x", None, 400),
    ("GET", "Users?startIndex=-5&count=-1", None, 200),
    ("GET", "Users?count=999999999", None, 200),
]


def test_what_no_directory_sends_is_refused_and_changes_nothing() -> None:
    person = make_user("frida")
    make_workspace(owner=person)
    before = list(User.objects.values_list("username", "is_active", "is_superuser"))
    for method, path, body, status in REFUSED:
        case = (method, path, str(body)[:80])
        assert ask(method, path.replace("{id}", person.public_id), body)[0] == status, case
        assert list(User.objects.values_list("username", "is_active", "is_superuser")) == before, case
