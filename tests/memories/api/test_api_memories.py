"""Memories of a workspace over REST."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from memories.models import Memory
from memories.writing import gate
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_memory
from workspaces.access import default_workspace


def path(cast: Cast, memory: Memory | None = None, tail: str = "") -> str:
    base = f"workspaces/{cast.workspace.public_id}/memories"
    return f"{base}/{memory.public_id}{tail}" if memory else base


FIELDS = {
    "id",
    "content",
    "summary",
    "category",
    "key",
    "tags",
    "importance",
    "pinned",
    "expires_at",
    "valid_from",
    "valid_to",
    "replaced_by",
    "scope",
    "agent_id",
    "source_type",
    "source_chat_id",
    "source_message_id",
    "rests_on",
    "workspace_id",
    "author",
    "edited_by",
    "imported",
    "imported_by",
    "may_replace",
    "searchable",
    "created_at",
    "updated_at",
    "last_accessed_at",
}


def test_create_answers_201_with_the_memory(cast: Cast) -> None:
    made = Api(cast.editor).post(
        path(cast),
        {
            "content": "  The deadline is March 15 ",
            "category": "fact",
            "key": "deadline",
            "tags": ["plan"],
            "importance": 0.9,
            "pinned": True,
            "expires_at": "2999-01-01T01:00:00+01:00",
        },
    )
    assert made.status_code == 201
    shown = made.json()
    assert set(shown) == FIELDS | {"duplicate"}
    assert shown["id"].startswith("mem_")
    assert shown["content"] == "The deadline is March 15"
    assert (shown["category"], shown["key"], shown["tags"]) == ("fact", "deadline", ["plan"])
    assert (shown["importance"], shown["pinned"]) == (0.9, True)
    assert shown["expires_at"] == "2999-01-01T00:00:00.000000Z"
    assert (shown["scope"], shown["source_type"]) == ("workspace", "user")
    assert shown["summary"] is shown["source_chat_id"] is shown["source_message_id"] is None
    assert shown["workspace_id"] == cast.workspace.public_id
    assert shown["author"] == {"id": cast.editor.public_id, "username": "eddie"}
    assert shown["duplicate"] is False


def test_create_names_the_wrong_field(cast: Cast) -> None:
    for body, field in (
        ({}, "content"),
        ({"content": "  "}, "content"),
        ({"content": None}, "content"),
        ({"content": "x" * 2001}, "content"),
        ({"content": "a", "category": "x" * 51}, "category"),
        ({"content": "a", "key": "x" * 201}, "key"),
        ({"content": "a", "tags": "plan"}, "tags"),
        ({"content": "a", "tags": [5]}, "tags.0"),
        ({"content": "a", "tags": ["x"] * 21}, "tags"),
        ({"content": "a", "importance": "high"}, "importance"),
        ({"content": "a", "importance": True}, "importance"),
        ({"content": "a", "importance": 1.01}, "importance"),
        ({"content": "a", "importance": 10**400}, "importance"),
        ({"content": "a", "pinned": "yes"}, "pinned"),
        ({"content": "a", "pinned": 1}, "pinned"),
        ({"content": "a", "expires_at": "tomorrow"}, "expires_at"),
        ({"content": "a", "expires_at": "2026-03-15T12:00:00"}, "expires_at"),
        ({"content": "a", "expires_at": "9999-12-31T23:59:59-14:00"}, "expires_at"),
        ({"content": "a", "expires_at": "2026-02-30T12:00:00Z"}, "expires_at"),
        ({"content": "a", "scope": "everyone"}, "scope"),
        ({"content": "a", "dedupe": "never"}, "dedupe"),
        ({"content": "a", "source_type": "import"}, "source_type"),
        ({"content": "a", "workspace_id": "ws_x"}, "workspace_id"),
        ({"content": "a", "author": "usr_x"}, "author"),
        ({"content": "a", "created_at": "2020-01-01T00:00:00Z"}, "created_at"),
    ):
        refused = Api(cast.editor).post(path(cast), body)
        assert refused.status_code == 422
        assert list(error_of(refused)["fields"]) == [field]
        assert not Memory.objects.exists()


def test_patch_refuses_what_is_the_systems_to_say(cast: Cast) -> None:
    memory = make_memory("Due in March", by=cast.owner, workspace=cast.workspace)
    for field in ("id", "scope", "source_type", "summary", "workspace_id", "deleted_at", "author"):
        refused = Api(cast.editor).patch(path(cast, memory), {field: "user"})
        assert refused.status_code == 422
        assert list(error_of(refused)["fields"]) == [field]


def test_revisions_tell_who_changed_what(cast: Cast) -> None:
    memory = make_memory("Due in March", by=cast.owner, workspace=cast.workspace)
    api = Api(cast.editor)
    api.patch(path(cast, memory), {"content": "Due in April"})
    history = api.get(path(cast, memory, "/revisions")).json()["items"]
    assert [(entry["action"], entry["by"]["username"]) for entry in history] == [
        ("edit", "eddie"),
        ("create", "olive"),
    ]
    assert history[0]["before"]["content"] == "Due in March"


def test_searchable_says_whether_there_is_a_vector(cast: Cast, settings: Settings) -> None:
    with_vector = make_memory("Due in March", by=cast.owner, workspace=cast.workspace)
    without = make_memory("Cats purr", by=cast.owner, workspace=cast.workspace)
    without.embeddings.all().delete()
    shown = {item["id"]: item["searchable"] for item in Api(cast.viewer).get(path(cast)).json()["items"]}
    assert shown == {with_vector.public_id: True, without.public_id: False}


def test_recall_gives_scored_memories(cast: Cast) -> None:
    wanted = make_memory("The project deadline is March 15", by=cast.owner, workspace=cast.workspace)
    make_memory("Olive is vegetarian", by=cast.owner, workspace=cast.workspace)
    found = Api(cast.viewer).post(
        f"workspaces/{cast.workspace.public_id}/recall",
        {"query": "When is the project deadline?", "limit": 1},
    )
    assert found.status_code == 200
    answer = found.json()
    assert (answer["degraded"], answer["degraded_reason"], answer["ranking"]) == (False, None, "hybrid")
    assert [item["id"] for item in answer["memories"]] == [wanted.public_id]
    first = answer["memories"][0]
    assert set(first) == FIELDS | {"score", "score_parts"}
    assert first["score"] == pytest.approx(sum(first["score_parts"].values()))


def test_list_is_newest_first_and_survives_inserts_and_deletes_while_paging(cast: Cast) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    # Three with each time: the id orders them.
    memories = [
        make_memory(
            f"Fact number {n}", by=cast.owner, workspace=cast.workspace, now=start + timedelta(hours=n // 3)
        )
        for n in range(12)
    ]
    newest_first = [memory.public_id for memory in reversed(memories)]
    api = Api(cast.viewer)
    first = api.get(path(cast), limit=4).json()
    assert [item["id"] for item in first["items"]] == newest_first[:4]

    make_memory("Saved while paging", by=cast.owner, workspace=cast.workspace)
    for place in (3, 5):  # the cursor's own row, and one after it
        memory = Memory.objects.get(public_id=newest_first[place])
        gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    second = api.get(path(cast), limit=4, cursor=first["next_cursor"]).json()
    assert [item["id"] for item in second["items"]] == [newest_first[4], *newest_first[6:9]]

    Memory.objects.get(public_id=second["items"][-1]["id"]).delete()  # permanently
    third = api.get(path(cast), limit=4, cursor=second["next_cursor"]).json()
    assert [item["id"] for item in third["items"]] == newest_first[9:]
    assert (third["has_more"], third["next_cursor"]) == (False, None)


def test_list_refuses_limits_out_of_range(cast: Cast) -> None:
    for limit in ("0", "101", "-1", "ten", "1e3", "", "9" * 2000):
        refused = Api(cast.viewer).get(path(cast), limit=limit)
        assert refused.status_code == 422
        assert error_of(refused)["fields"] == {"limit": "Must be a whole number from 1 to 100."}


def test_a_cursor_of_another_list_or_none_at_all_is_refused(cast: Cast) -> None:
    for number in range(2):
        make_memory(f"Fact number {number}", by=cast.owner, workspace=cast.workspace)
        make_memory(f"Own fact number {number}", by=cast.owner)
    api = Api(cast.owner)
    own = f"workspaces/{default_workspace(cast.owner).public_id}/memories"
    cursor = api.get(own, limit=1).json()["next_cursor"]
    assert api.get(own, limit=1, cursor=cursor).status_code == 200
    for wrong in (cursor[:-2], cursor + "x", "a", "WyJhIl0", "\0", "é:é:é", "x" * 5000):
        assert error_of(api.get(own, cursor=wrong))["code"] == "bad_cursor", wrong
    refused = api.get(path(cast), cursor=cursor)
    assert (refused.status_code, error_of(refused)["code"]) == (400, "bad_cursor")


def test_memory_is_ended_replaced_and_recalled_as_of_a_moment(cast: Cast) -> None:
    api = Api(cast.editor)
    older, newer = (
        make_memory(f"The vault is at {bank}", cast.editor, cast.workspace) for bank in ("Ava", "Bo")
    )
    at = path(cast, older)
    wrong = api.patch(at, {"valid_from": "2026-03-01T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"})
    assert (wrong.status_code, [*error_of(wrong)["fields"]]) == (422, ["valid_to"])
    assert [*error_of(api.patch(at, {"replaced_by": older.public_id}))["fields"]] == ["replaced_by"]
    assert api.patch(at, {"replaced_by": "mem_" + "a" * 24}).status_code == 404
    assert (
        api.patch(at, {"valid_to": "2026-02-01T00:00:00Z"}).json()["valid_to"]
        == "2026-02-01T00:00:00.000000Z"
    )
    asked = {"query": "vault", "ranking": "lexical"}
    recall = f"workspaces/{cast.workspace.public_id}/recall"
    then = api.post(recall, {**asked, "as_of": "2026-01-01T00:00:00Z"}).json()["memories"]
    now = api.post(recall, asked).json()["memories"]
    assert (len(then), [each["id"] for each in now]) == (2, [newer.public_id])
    assert api.patch(at, {"replaced_by": newer.public_id}).json()["replaced_by"] == newer.public_id
    again = api.patch(at, {"replaced_by": None}).json()
    assert (again["replaced_by"], again["valid_to"]) == (None, "2026-02-01T00:00:00.000000Z")
