"""Search in a workspace, shared by the REST route and the model's tool."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.recalling.workspace_search import search_workspace
from memories.writing.gate import delete_memory
from memoryhub.errors import NotFound
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_memory, make_message


def search(cast: Cast, query: str, **body: Any) -> Any:
    answer = Api(cast.viewer).post(f"workspaces/{cast.workspace.public_id}/search", {"query": query, **body})
    assert answer.status_code == 200
    return answer.json()["results"]


def test_what_matters_comes_first(cast: Cast) -> None:
    deadline = make_memory("The project deadline is March 15", cast.owner, cast.workspace)
    make_memory("Olive has two cats", cast.owner, cast.workspace)
    best = search(cast, "When is the deadline of the project?")[0]
    assert best.pop("score") > 0
    assert best == {
        "type": "memory",
        "id": deadline.public_id,
        "text": "The project deadline is March 15",
        "title": "",
        "chat_id": None,
        "place": None,
        "imported": False,
        "imported_by": None,
        "author": {"id": cast.owner.public_id, "username": "olive"},
        "edited_by": None,
        "created_at": deadline.created_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }


def test_only_what_the_asker_may_see_is_found(cast: Cast) -> None:
    now = timezone.now()
    mine = make_memory("The secret word is plum, says Vera", cast.viewer, scope="user")
    make_memory("The secret word is pear, says Olive", cast.owner, scope="user")
    make_memory("The secret word is fig, says nobody", cast.owner, expires_at=now - timedelta(days=1))
    gone = make_memory("The secret word is kiwi", cast.owner, cast.workspace)
    delete_memory(gone, by=cast.owner, now=now)
    make_memory("The secret word is lime, elsewhere", cast.stranger)
    chat = make_chat(cast.owner, cast.workspace)
    make_message(chat, "The secret word is mango")
    types = ["memory", "document"]
    assert [found["id"] for found in search(cast, "the secret word", types=types)] == [mine.public_id]


def test_nothing_is_asked_of_nothing(cast: Cast) -> None:
    make_memory("Olive has two cats", cast.owner, cast.workspace)
    assert search(cast, "  ") == []
    assert search(cast, "cats", limit=0) == []
    assert len(search(cast, "cats", limit=1)) == 1


def test_a_wrong_field_is_named(cast: Cast) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"query": 5},
        {"query": "cats", "limit": "5"},
        {"query": "cats", "q": 1},
    ]
    for body in bodies:
        refused = Api(cast.viewer).post(f"workspaces/{cast.workspace.public_id}/search", body)
        assert refused.status_code == 422, body
        assert error_of(refused)["fields"], body


def test_a_stranger_finds_no_workspace(cast: Cast) -> None:
    with pytest.raises(NotFound):
        search_workspace("cats", cast.workspace, cast.stranger, now=timezone.now(), policy=HERE)
