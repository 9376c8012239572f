"""Workspaces and members over REST."""

from datetime import UTC, datetime

import pytest

from tests.api import Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.raw_search import places_with
from workspaces.access import default_workspace
from workspaces.models import Workspace


@pytest.mark.django_db
def test_list_begins_with_the_own_workspace_made_on_first_sight() -> None:
    page = Api(make_user()).get("workspaces").json()
    assert [(item["name"], item["is_default"], item["role"]) for item in page["items"]] == [
        ("Personal", True, "owner")
    ]
    assert page["next_cursor"] is None
    assert page["has_more"] is False


def test_get_shows_role_and_counts_of_what_the_asker_may_see(cast: Cast) -> None:
    make_memory("The launch is in May", by=cast.owner, workspace=cast.workspace)
    gone = make_memory("The launch is in June", by=cast.owner, workspace=cast.workspace)
    gone.deleted_at = datetime.now(UTC)
    gone.save()
    shown = Api(cast.viewer).get(f"workspaces/{cast.workspace.public_id}").json()
    assert shown["id"] == cast.workspace.public_id
    assert (shown["role"], shown["member_count"], shown["memory_count"]) == ("viewer", 3, 1)
    assert shown["created_at"].endswith("Z")
    assert datetime.fromisoformat(shown["created_at"]) == cast.workspace.created_at


@pytest.mark.django_db
def test_create_answers_201_with_the_workspace() -> None:
    person = make_user()
    made = Api(person).post("workspaces", {"name": "Launch", "description": "Spring"})
    assert made.status_code == 201
    assert made.json()["name"] == "Launch"
    assert made.json()["role"] == "owner"
    assert made.json()["member_count"] == 1
    assert Workspace.objects.visible_to(person).filter(public_id=made.json()["id"]).exists()


@pytest.mark.django_db
def test_create_names_the_wrong_field() -> None:
    for body, field in [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"name": ["a"]}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "a", "description": "x" * 2001}, "description"),
        ({"name": "a", "default_of": 1}, "default_of"),
        ({"name": "a", "id": "ws_x"}, "id"),
    ]:
        refused = Api(make_user()).post("workspaces", body)
        assert refused.status_code == 422, (body, field)
        assert error_of(refused)["code"] == "invalid", (body, field)
        assert list(error_of(refused)["fields"]) == [field], (body, field)


def test_delete_answers_with_what_went_and_the_workspace_is_gone(cast: Cast) -> None:
    said = "The hull is made of larch"
    make_message(make_chat(cast.editor, cast.workspace, title=said), said)
    make_memory(said, cast.editor, cast.workspace)
    api = Api(cast.owner)
    refused = api.delete(f"workspaces/{cast.workspace.public_id}")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "reauthenticate")
    type_password_again(api.client)
    deleted = api.delete(f"workspaces/{cast.workspace.public_id}")
    assert deleted.status_code == 200
    removed = deleted.json()["removed"]
    assert (removed["memories"], removed["chats"], removed["messages"], removed["workspaces"]) == (1, 1, 1, 1)
    assert removed["memberships"] == 3
    assert removed["memory_words"] > 0
    assert places_with(said) == []
    assert api.get(f"workspaces/{cast.workspace.public_id}").status_code == 404
    asked = api.post(f"workspaces/{cast.workspace.public_id}/recall", {"query": said})
    assert asked.status_code == 404
    mine = Api(cast.editor)
    home = default_workspace(cast.editor).public_id
    assert mine.post(f"workspaces/{home}/recall", {"query": said}).json()["memories"] == []


def test_members_are_added_changed_and_removed(cast: Cast) -> None:
    api, members = Api(cast.owner), f"workspaces/{cast.workspace.public_id}/members"
    added = api.post(members, {"username": "sam", "role": "editor"})
    assert added.status_code == 201
    assert added.json() | {"joined_at": ""} == {
        "id": cast.stranger.public_id,
        "username": "sam",
        "role": "editor",
        "status": "invited",
        "joined_at": "",
    }
    assert Api(cast.stranger).post(f"{members}/accept").status_code == 200
    member = f"{members}/{cast.stranger.public_id}"
    assert api.patch(member, {"role": "viewer"}).json()["role"] == "viewer"
    assert api.delete(member).status_code == 204
    names = [item["username"] for item in api.get(members).json()["items"]]
    assert names == ["olive", "eddie", "vera"]
