"""Groups over SCIM: the RFC's examples of membership, requests of Entra ID and Okta, and resulting permissions."""

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests.conftest import Cast
from tests.factories import PASSWORD, make_user
from tests.rollback import rolled_back
from tests.workspaces.scim.test_scim import PATCH, TOKEN, ask
from workspaces.models import AuditEvent, DirectoryGroup, GroupGrant, Membership, User, Workspace

pytestmark = pytest.mark.django_db
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


@pytest.fixture(autouse=True)
def mapped(cast: Cast, settings: Any) -> Cast:
    ws = cast.workspace.public_id
    settings.SCIM_TOKEN = TOKEN
    settings.SSO_GROUPS = {"Readers": [f"{ws}:viewer"], "Writers": [f"{ws}:editor"], "Helpdesk": ["staff"]}
    cache.clear()
    return cast


def role_of(person: User, workspace: Workspace) -> str | None:
    return Membership.objects.filter(user=person, workspace=workspace).values_list("role", flat=True).first()


def named(*people: User) -> list[dict[str, str]]:
    return [{"value": person.public_id} for person in people]


def make(name: str, *people: User, **more: Any) -> str:
    status, made = ask(
        "POST", "Groups", {"schemas": [GROUP], "displayName": name, "members": named(*people)} | more
    )
    assert (status, made["displayName"]) == (201, name), made
    return str(made["id"])


def change(group: str, *operations: Any) -> int:
    """Send a PATCH and return its status: 204 without a body on success."""
    answer = Client().patch(
        f"/scim/v2/Groups/{group}",
        json.dumps({"schemas": [PATCH], "Operations": operations}),
        content_type="application/scim+json",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    assert (answer.status_code == 204) == (answer.content == b"")
    return answer.status_code


def sign_in(name: str) -> None:
    assert Client().post("/accounts/login/", {"login": name, "password": PASSWORD}).status_code == 302


def members(group: str) -> set[str]:
    return {each["display"] for each in ask("GET", f"Groups/{group}")[1]["members"]}


def test_a_group_is_made_found_replaced_and_taken_away(mapped: Cast) -> None:
    gina, hugo = make_user("gina"), make_user("hugo")
    group = make("Writers", gina, externalId="an-object-id")
    status, said = ask("GET", f"Groups/{group}")
    assert (status, said["externalId"], said["members"]) == (
        200,
        "an-object-id",
        [{"value": gina.public_id, "display": "gina"}],
    )
    assert said["meta"]["location"].endswith(f"/scim/v2/Groups/{group}")
    assert ask("POST", "Groups", {"displayName": "writers"})[1]["scimType"] == "uniqueness"
    found = ask("GET", "Groups", filter='displayName eq "WRITERS"', excludedAttributes="members")[1]
    assert found["totalResults"] == 1
    assert "members" not in found["Resources"][0]
    assert ask("GET", "Groups", filter='displayName eq "Nobody"')[1]["totalResults"] == 0
    assert role_of(gina, mapped.workspace) == "editor"
    replaced = {"displayName": "Writers", "members": named(hugo)}
    assert ask("PUT", f"Groups/{group}", replaced)[1]["members"][0]["display"] == "hugo"
    assert (role_of(gina, mapped.workspace), role_of(hugo, mapped.workspace)) == (None, "editor")
    answer = Client().delete(f"/scim/v2/Groups/{group}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, role_of(hugo, mapped.workspace)) == (204, None)
    assert ask("GET", f"Groups/{group}")[0] == 404
    assert not GroupGrant.objects.exists()
    kinds = ask("GET", "ResourceTypes")[1]["Resources"]
    assert [kind["endpoint"] for kind in kinds] == ["/Users", "/Groups"]


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"op": "add", "path": "members", "value": [{"value": "{hugo}", "display": "Hugo"}]}, "gina hugo"),
    (
        {"op": "Add", "path": "members", "value": [{"$ref": None, "value": "{hugo}"}]},
        "gina hugo",
    ),  # Entra ID
    ({"op": "add", "value": {"members": [{"value": "{hugo}"}]}}, "gina hugo"),
    ({"op": "add", "path": "members", "value": {"value": "{gina}"}}, "gina"),
    ({"op": "Remove", "path": "members", "value": [{"value": "{gina}"}]}, ""),  # Entra ID
    ({"op": "remove", "path": 'members[value eq "{gina}"]'}, ""),  # the RFC, Okta
    ({"op": "remove", "path": 'members[value eq "{hugo}"]'}, "gina"),
    ({"op": "remove", "path": "members"}, ""),
    ({"op": "replace", "path": "members", "value": [{"value": "{hugo}"}]}, "hugo"),
    ({"op": "replace", "path": f"{GROUP}:members", "value": []}, ""),
]


def test_members_change_as_directories_send_it(mapped: Cast) -> None:
    gina, hugo = make_user("gina"), make_user("hugo")
    group = make("Writers", gina)
    for operation, expected in rolled_back(CHANGES):
        text = json.dumps(operation).replace("{gina}", gina.public_id).replace("{hugo}", hugo.public_id)
        assert change(group, json.loads(text)) == 204, operation
        assert members(group) == set(expected.split()), operation
        for person in (gina, hugo):
            role = "editor" if person.username in expected else None
            assert role_of(person, mapped.workspace) == role, operation


def test_the_highest_of_several_groups_holds_and_what_people_gave_stays(mapped: Cast) -> None:
    ws, gina = mapped.workspace, make_user("gina")
    readers, writers, helpdesk = make("Readers", gina), make("Writers", gina), make("Helpdesk", gina)
    assert (role_of(gina, ws), User.objects.get(pk=gina.pk).is_staff) == ("editor", True)
    leave = {"op": "remove", "path": f'members[value eq "{gina.public_id}"]'}
    assert [change(writers, leave), change(helpdesk, leave)] == [204, 204]
    assert (role_of(gina, ws), User.objects.get(pk=gina.pk).is_staff) == ("viewer", False)
    assert (
        change(readers, {"op": "replace", "value": {"id": readers, "displayName": "Guests"}}) == 204
    )  # Okta
    assert role_of(gina, ws) is None, "a group of this name gives nothing"
    assert change(readers, {"op": "Replace", "path": "displayName", "value": "Writers2"}) == 204
    make("Elsewhere", mapped.viewer, mapped.owner)
    assert (
        change(writers, {"op": "add", "path": "members", "value": named(mapped.viewer, mapped.owner)}) == 204
    )
    assert change(writers, {"op": "remove", "path": "members"}) == 204
    assert (role_of(mapped.viewer, ws), role_of(mapped.owner, ws)) == ("viewer", "owner")
    noted = AuditEvent.objects.filter(target=gina.public_id, by_id="").values_list("verb", flat=True)
    assert sorted(noted) == sorted(
        ["member_added", *["role_changed"] * 2, "member_removed", *["rights_changed"] * 2]
    )


def test_a_sign_in_brings_what_groups_give_since(mapped: Cast, settings: Any) -> None:
    gina = make_user("gina")
    make("Guests", gina)
    settings.SSO_GROUPS = {"Guests": [f"{mapped.workspace.public_id}:viewer"]}
    sign_in("gina")
    assert role_of(gina, mapped.workspace) == "viewer"
    settings.SSO_GROUPS_CLAIM = "groups"
    assert ask("GET", "Groups")[0] == 501
    assert ask("GET", "ResourceTypes")[1]["totalResults"] == 1
    settings.SSO_GROUPS = {}
    sign_in("gina")
    assert role_of(gina, mapped.workspace) == "viewer", "without a password nothing of the claim is heard"


REFUSED: list[tuple[str, str, Any, int]] = [
    ("POST", "Groups", {}, 400),
    ("POST", "Groups", {"displayName": " "}, 400),
    ("POST", "Groups", {"displayName": "x" * 257}, 400),
    ("POST", "Groups", {"displayName": "a\x00b"}, 400),
    ("POST", "Groups", {"displayName": "x", "members": "usr"}, 400),
    ("POST", "Groups", {"displayName": "x", "members": [{"value": 1}]}, 400),
    ("POST", "Groups", {"displayName": "x", "members": [{"value": "usr_\x00"}]}, 400),
    ("POST", "Groups", {"displayName": "x", "members": [{"value": "usr_aaaaaaaaaaaaaaaaaaaaaaaa"}]}, 400),
    ("POST", "Groups", {"displayName": "x", "isSuperuser": True}, 400),
    ("PATCH", "Groups/{id}", {"Operations": [{"op": "add", "path": 'members[value eq "x"]'}]}, 400),
    ("PATCH", "Groups/{id}", {"Operations": [{"op": "add", "path": "members"}]}, 400),
    ("PATCH", "Groups/{id}", {"Operations": [{"op": "remove", "path": "displayName"}]}, 400),
    ("PATCH", "Groups/{id}", {"Operations": [{"op": "remove", "path": "members[type eq 1]"}]}, 400),
    ("PATCH", "Groups/{id}", {"Operations": [{"op": "replace", "path": "workspaces", "value": []}]}, 400),
    ("PUT", "Groups/{id}", {"members": []}, 400),
    ("DELETE", "Groups/usr_aaaaaaaaaaaaaaaaaaaaaaaa", None, 404),
    ("GET", "Groups/%00", None, 404),
    ("GET", "Groups?filter=members%20eq%20%22a%22", None, 400),
]


def test_what_no_directory_sends_is_refused_and_changes_no_group() -> None:
    group = make("Writers", make_user("gina"))
    for method, path, body, status in REFUSED:
        assert ask(method, path.replace("{id}", group), body)[0] == status, (method, path, body)
        assert [each.name for each in DirectoryGroup.objects.all()] == ["Writers"], (method, path, body)
        assert members(group) == {"gina"}, (method, path, body)
