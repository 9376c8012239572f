"""Connections over REST: a key is written and never returned, and a workspace's choice."""

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.conftest import Cast
from tests.factories import make_connection, make_user
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import User
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db
LIST = "/chat/api/connections"
KEY = "sk-very-secret-0123456789"
BODY = {"name": "Mine", "base_url": "https://api.example.org/v1", "model": "m", "api_key": KEY}


@pytest.fixture(autouse=True)
def people_may(settings: Settings) -> None:
    settings.PEOPLE_MAY_CONNECT = True


def send(user: User, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    return signed_in(user).generic(method, path, json.dumps(body or {}), content_type="application/json")


def admin() -> User:
    return make_user(is_staff=True, is_superuser=True)


def test_the_key_goes_in_and_never_comes_out(cast: Cast) -> None:
    made = send(cast.editor, "POST", LIST, BODY)
    assert made.status_code == 201 and made.json()["has_key"] is True
    one = f"{LIST}/{made.json()['id']}"
    answers = [
        made,
        signed_in(cast.editor).get(one),
        signed_in(cast.editor).get(LIST),
        send(cast.editor, "PATCH", one, {"model": "n"}),
    ]
    for answer in answers:
        assert KEY not in answer.content.decode() and "sealed" not in answer.content.decode()
    assert Connection.objects.get().api_key == KEY


def test_the_list_has_the_shared_ones_and_ones_own(cast: Cast) -> None:
    shared, mine, _other = (
        make_connection(name="A"),
        make_connection(cast.editor),
        make_connection(cast.owner),
    )
    found = signed_in(cast.editor).get(LIST).json()["items"]
    assert [each["id"] for each in found] == [shared.public_id, mine.public_id]
    assert [each["base_url"] for each in found] == [None, "https://api.example.org/v1"]
    only = {
        whose: signed_in(cast.editor).get(LIST, {"whose": whose}).json()["items"]
        for whose in ("shared", "mine")
    }
    assert [len(only["shared"]), len(only["mine"])] == [1, 1]
    seen = signed_in(admin()).get(f"{LIST}/{shared.public_id}").json()
    assert seen["base_url"] == "https://api.example.org/v1"


def test_shared_ones_are_made_by_administrators(cast: Cast) -> None:
    assert send(cast.owner, "POST", LIST, BODY | {"shared": True}).status_code == 403
    made = send(admin(), "POST", LIST, BODY | {"shared": True, "is_local": True})
    assert made.status_code == 201 and made.json()["is_shared"] and made.json()["is_local"]
    one = f"{LIST}/{made.json()['id']}"
    assert [send(cast.owner, method, one).status_code for method in ("PATCH", "DELETE")] == [403, 403]
    assert send(cast.owner, "POST", f"{one}/test").status_code == 403
    assert send(admin(), "DELETE", one).status_code == 204


def test_prices_are_decimals_as_text(cast: Cast) -> None:
    made = send(cast.owner, "POST", LIST, BODY | {"price_in": "0.15", "price_out": 0.6}).json()
    assert (made["price_in"], made["price_cached"], made["price_out"]) == ("0.150000", None, "0.600000")
    one = f"{LIST}/{made['id']}"
    assert send(cast.owner, "PATCH", one, {"price_cached": "0.075"}).json()["price_cached"] == "0.075000"
    assert send(cast.owner, "PATCH", one, {"price_in": None}).status_code == 422


def test_default_for_everyone_is_the_administrators_to_name(cast: Cast) -> None:
    ada = admin()
    first, second = make_connection(is_default=True), make_connection(name="Second")
    mine = make_connection(cast.editor)
    for person, connection, status in (
        (cast.editor, second, 403),
        (cast.editor, mine, 422),
        (ada, second, 200),
    ):
        answer = send(person, "PATCH", f"{LIST}/{connection.public_id}", {"is_default": True})
        assert answer.status_code == status, (person, answer.content)
    assert answer.json()["is_default"] is True
    first.refresh_from_db()
    assert not first.is_default
    own = default_workspace(cast.editor)
    where = f"/chat/api/workspaces/{own.public_id}"
    answer = send(cast.editor, "PATCH", where, {"connection_id": "built-in"})
    assert answer.json()["connection_id"] == "built-in"
    assert [row["id"] for row in signed_in(cast.editor).get(LIST).json()["items"]].count("built-in") == 0


def test_a_workspaces_choice(cast: Cast) -> None:
    url = f"/chat/api/workspaces/{cast.workspace.public_id}"
    shared, others = make_connection(), make_connection(cast.editor)
    assert send(cast.editor, "PATCH", url, {"connection_id": shared.public_id}).status_code == 403
    changed = send(cast.owner, "PATCH", url, {"connection_id": shared.public_id, "local_only": False})
    assert changed.json()["connection_id"] == shared.public_id
    assert send(cast.owner, "PATCH", url, {"connection_id": others.public_id}).status_code == 422
    assert send(cast.owner, "PATCH", url, {"name": "Other"}).json()["connection_id"] == shared.public_id
    assert send(cast.owner, "PATCH", url, {"connection_id": None}).json()["connection_id"] is None


def test_a_workspace_whose_memories_stay_takes_local_ones_alone(cast: Cast) -> None:
    url = f"/chat/api/workspaces/{cast.workspace.public_id}"
    far, near = make_connection(name="Far"), make_connection(is_local=True)
    refused = send(cast.owner, "PATCH", url, {"local_only": True, "connection_id": far.public_id})
    assert refused.status_code == 422
    assert (
        refused.json()["error"]["code"] == "model_not_local" and "“Far”" in refused.json()["error"]["message"]
    )
    assert signed_in(cast.owner).get(url).json()["local_only"] is False, "all of it or nothing"
    changed = send(cast.owner, "PATCH", url, {"local_only": True, "connection_id": near.public_id})
    assert changed.json()["local_only"] is True


def test_a_change_of_one_field_leaves_what_another_owner_changed_meanwhile(cast: Cast) -> None:
    from workspaces.access import get_workspace
    from workspaces.actions.workspaces import update_workspace

    stale = get_workspace(cast.owner, cast.workspace.public_id)
    update_workspace(cast.workspace, by=cast.owner, local_only=True)
    update_workspace(stale, by=cast.owner, name="Renamed")
    cast.workspace.refresh_from_db()
    assert (cast.workspace.name, cast.workspace.local_only) == ("Renamed", True)


def test_a_chats_choice(cast: Cast) -> None:
    shared, mine, others = make_connection(), make_connection(cast.editor), make_connection(cast.owner)
    body = {"workspace_id": cast.workspace.public_id, "connection_id": shared.public_id}
    made = send(cast.editor, "POST", "/chat/api/chats", body)
    assert made.status_code == 201 and made.json()["connection_id"] == shared.public_id
    url = f"/chat/api/chats/{made.json()['id']}"
    assert (
        send(cast.editor, "PATCH", url, {"connection_id": mine.public_id}).json()["connection_id"]
        == mine.public_id
    )
    for wrong in (others.public_id, "conn_nothing", ""):
        answer = send(cast.editor, "PATCH", url, {"connection_id": wrong})
        assert answer.status_code == 422, wrong
    assert send(cast.viewer, "PATCH", url, {"connection_id": None}).status_code == 403
    assert send(cast.editor, "PATCH", url, {"connection_id": None}).json()["connection_id"] is None


def test_no_export_holds_any_of_it(cast: Cast) -> None:
    from tests.chat.import_export.test_exchange import exported
    from tests.factories import make_chat

    mine = make_connection(cast.owner, name="Whatever its name", api_key=KEY)
    cast.workspace.connection = mine
    cast.workspace.save()
    make_chat(cast.owner, cast.workspace, connection=mine, title="A chat")
    for place in (cast.workspace, None):
        text = exported(cast.owner, place)
        assert b"A chat" in text
        for hidden in (KEY, mine.sealed_key, mine.name, mine.public_id, "api.example.org"):
            assert hidden.encode() not in text
