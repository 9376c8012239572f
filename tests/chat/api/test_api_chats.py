"""Chats over REST."""

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_chat, make_user
from workspaces.access import default_workspace


@pytest.mark.django_db
def test_create_without_a_workspace_uses_the_own_one() -> None:
    person = make_user("ann")
    made = Api(person).post("chats", {"title": "Deadlines", "memory_enabled": True})
    assert made.status_code == 201
    shown = made.json()
    assert shown["id"].startswith("chat_")
    assert shown["workspace_id"] == default_workspace(person).public_id
    assert (shown["title"], shown["memory_enabled"]) == ("Deadlines", True)
    assert (shown["is_private"], shown["is_temporary"]) == (False, False)
    assert shown["created_by"] == {"id": person.public_id, "username": "ann"}
    assert shown["created_at"].endswith("Z")
    assert Api(person).get(f"chats/{shown['id']}").json() == shown


def test_create_names_the_wrong_field(cast: Cast) -> None:
    for body, field in (
        ({"title": 5}, "title"),
        ({"title": None}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"memory_enabled": "on"}, "memory_enabled"),
        ({"is_private": None}, "is_private"),
        ({"is_temporary": 0}, "is_temporary"),
        ({"created_by": "usr_x"}, "created_by"),
    ):
        refused = Api(cast.editor).post("chats", body)
        assert refused.status_code == 422
        assert list(error_of(refused)["fields"]) == [field]


def test_patch_changes_title_chip_and_privacy(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="Old", memory_enabled=True)
    api = Api(cast.editor)
    changed = api.patch(
        f"chats/{chat.public_id}", {"title": "New", "memory_enabled": None, "is_private": True}
    )
    assert changed.status_code == 200
    assert (changed.json()["title"], changed.json()["memory_enabled"]) == ("New", None)
    assert changed.json()["is_private"] is True
    assert Api(cast.owner).get(f"chats/{chat.public_id}").status_code == 404
    assert api.patch(f"chats/{chat.public_id}", {}).status_code == 422
    assert api.get(f"chats/{chat.public_id}").json() == changed.json()


def test_patch_is_all_or_nothing(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Old")
    refused = Api(cast.editor).patch(f"chats/{chat.public_id}", {"title": "New", "is_private": True})
    assert refused.status_code == 403
    chat.refresh_from_db()
    assert (chat.title, chat.is_private) == ("Old", False)


def test_patch_refuses_what_cannot_be_changed(cast: Cast) -> None:
    for field in ("workspace_id", "is_temporary", "created_by", "deleted_at"):
        chat = make_chat(cast.owner, cast.workspace)
        refused = Api(cast.owner).patch(f"chats/{chat.public_id}", {field: True})
        assert list(error_of(refused)["fields"]) == [field]


def test_delete_and_restore(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    api, place = Api(cast.editor), f"chats/{chat.public_id}"
    assert api.delete(place).status_code == 204
    assert api.get(place).status_code == api.delete(place).status_code == 404
    assert api.get("chats").json()["items"] == []
    assert api.post(f"{place}/restore").json()["id"] == chat.public_id
    assert api.get(place).status_code == 200


def test_another_editors_chat_is_not_theirs_to_delete(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    assert Api(cast.editor).delete(f"chats/{chat.public_id}").status_code == 403
    own = make_chat(cast.editor, cast.workspace)
    assert Api(cast.owner).delete(f"chats/{own.public_id}").status_code == 204


def test_list_shows_what_the_person_may_see_latest_first(cast: Cast) -> None:
    now = timezone.now()
    first = make_chat(cast.owner, cast.workspace, title="First", active_at=now.replace(year=2024))
    second = make_chat(cast.editor, cast.workspace, title="Second", active_at=now.replace(year=2025))
    elsewhere = make_chat(cast.viewer, title="Own", active_at=now.replace(year=2023))
    make_chat(cast.owner, cast.workspace, is_private=True)
    make_chat(cast.viewer, cast.workspace, is_temporary=True)
    make_chat(cast.owner)
    api = Api(cast.viewer)
    listed = [chat["id"] for chat in api.get("chats").json()["items"]]
    assert listed == [second.public_id, first.public_id, elsewhere.public_id]
    in_workspace = api.get("chats", workspace_id=cast.workspace.public_id).json()["items"]
    assert [chat["id"] for chat in in_workspace] == [second.public_id, first.public_id]


def test_under_the_operators_veto_memory_is_shown_as_off(cast: Cast, settings: Settings) -> None:
    made = Api(cast.owner).post("chats", {"memory_enabled": True}).json()
    assert made["memory_enabled"] is True
    settings.MEMORY_ENABLED = False
    assert Api(cast.owner).get(f"chats/{made['id']}").json()["memory_enabled"] is False
