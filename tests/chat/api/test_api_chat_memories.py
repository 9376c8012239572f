"""The memories of one chat over REST."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from chat.models import Chat
from memories.models import Memory
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message


@pytest.fixture
def chat(cast: Cast) -> Chat:
    return make_chat(cast.editor, cast.workspace)


def remembered(cast: Cast, chat: Chat, content: str = "Due in March", **fields: Any) -> Memory:
    return make_memory(
        content, by=cast.editor, workspace=cast.workspace, source_chat_id=chat.public_id, **fields
    )


def test_a_message_is_remembered(cast: Cast, chat: Chat) -> None:
    message = make_message(chat, "The project deadline is March 15, 2026")
    made = Api(cast.editor).post(
        f"{chat.public_id}/memory", {"messageId": message.public_id, "category": "fact"}
    )
    assert made.status_code == 201
    shown = made.json()
    assert shown["content"] == message.content
    assert (shown["source_type"], shown["category"], shown["duplicate"]) == ("user", "fact", False)
    assert (shown["source_chat_id"], shown["source_message_id"]) == (chat.public_id, message.public_id)
    assert shown["workspace_id"] == cast.workspace.public_id
    again = Api(cast.editor).post(f"{chat.public_id}/memory", {"messageId": message.public_id})
    assert (again.status_code, again.json()["duplicate"], again.json()["id"]) == (200, True, shown["id"])


def test_a_long_message_is_cut_but_a_long_text_is_refused(cast: Cast, chat: Chat) -> None:
    message = make_message(chat, "word " * 1000)
    api = Api(cast.editor)
    assert (
        len(api.post(f"{chat.public_id}/memory", {"messageId": message.public_id}).json()["content"]) <= 2000
    )
    refused = api.post(f"{chat.public_id}/memory", {"content": "word " * 1000})
    assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["content"])


def test_create_names_the_wrong_fields(cast: Cast, chat: Chat) -> None:
    for body, fields in (
        ({}, ["messageId", "content"]),
        ({"category": "fact"}, ["messageId", "content"]),
        ({"messageId": 5}, ["messageId"]),
        ({"messageId": None}, ["messageId"]),
        ({"content": "a", "synthesize": "yes"}, ["synthesize"]),
        ({"content": "a", "importance": 1}, ["importance"]),
    ):
        refused = Api(cast.editor).post(f"{chat.public_id}/memory", body)
        assert refused.status_code == 422
        assert list(error_of(refused)["fields"]) == fields


def test_a_message_that_is_not_in_the_chat_is_not_found(cast: Cast, chat: Chat) -> None:
    for message_id in ("msg_x", "%", "msg_" + "a" * 24, "a\0b"):
        response = Api(cast.editor).post(f"{chat.public_id}/memory", {"messageId": message_id})
        assert response.status_code == (422 if "\0" in message_id else 404)
        other = make_message(make_chat(cast.editor, cast.workspace), "Elsewhere")
        assert (
            Api(cast.editor).post(f"{chat.public_id}/memory", {"messageId": other.public_id}).status_code
            == 404
        )


def test_list_is_flat_newest_first_and_of_this_chat_alone(cast: Cast, chat: Chat) -> None:
    first, second = remembered(cast, chat, "First"), remembered(cast, chat, "Second")
    make_memory("Elsewhere", by=cast.editor, workspace=cast.workspace)
    listed = Api(cast.viewer).get(f"{chat.public_id}/memories").json()
    assert set(listed) == {"memories"}
    assert [memory["id"] for memory in listed["memories"]] == [second.public_id, first.public_id]


def test_list_costs_the_same_for_one_row_and_for_many(
    cast: Cast, chat: Chat, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        remembered(cast, chat, f"Fact number {number}")
    api = Api(cast.viewer)
    with django_assert_num_queries(4):  # session, user, chat, the memories
        assert len(api.get(f"{chat.public_id}/memories").json()["memories"]) == 5


def test_patch_and_delete(cast: Cast, chat: Chat) -> None:
    memory = remembered(cast, chat)
    api, place = Api(cast.editor), f"{chat.public_id}/memories/{memory.public_id}"
    assert api.patch(place, {"content": "Due in April"}).json()["content"] == "Due in April"
    assert error_of(api.patch(place, {"content": ""}))["fields"]["content"] == "Must not be blank."
    assert api.delete(place).status_code == 204
    assert api.delete(place).status_code == api.patch(place, {"content": "a"}).status_code == 404
    assert api.get(f"{chat.public_id}/memories").json() == {"memories": []}


def test_a_memory_of_another_chat_is_not_found(cast: Cast, chat: Chat) -> None:
    elsewhere = remembered(cast, make_chat(cast.editor, cast.workspace))
    place = f"{chat.public_id}/memories/{elsewhere.public_id}"
    api = Api(cast.editor)
    assert api.patch(place, {"content": "a"}).status_code == api.delete(place).status_code == 404


def test_rerun_extraction_needs_a_source_message(cast: Cast, chat: Chat) -> None:
    memory = remembered(cast, chat)
    refused = Api(cast.editor).post(f"{chat.public_id}/memories/{memory.public_id}/rerun-extraction")
    assert (refused.status_code, error_of(refused)["code"]) == (409, "no_source")
