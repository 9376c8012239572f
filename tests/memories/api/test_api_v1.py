"""The organisation memory API: its field names, recall, and permissions."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.api.v1.serializers import importance_inside, importance_outside
from memories.models import Memory, Scope
from memories.writing.gate import Draft, edit_memory
from tests.api import V1, Api, error_of, type_password_again
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import make_key_text, make_memory
from tests.memories.secret_samples import PROMISED
from workspaces.access import default_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cast: Cast) -> Api:
    """The editor's API key for the shared workspace."""
    return Api(base=V1, key=make_key_text(cast.editor, cast.workspace))


def save(api: Api, value: str, **fields: Any) -> Any:
    saved = api.post("memories", {"value": value, **fields})
    assert saved.status_code in {200, 201}, saved.json()
    return saved.json()


def found(api: Api, query: str, **fields: Any) -> list[str]:
    return [
        each["value"] for each in api.post("memories/recall", {"query": query, **fields}).json()["memories"]
    ]


# Saving


def test_a_memory_has_the_fields_of_the_organisation_api(api: Api, cast: Cast) -> None:
    saved = api.post("memories", {"value": "  Cats purr "})
    assert saved.status_code == 201
    memory = saved.json()
    assert memory.pop("id").startswith("mem_")
    assert memory.pop("createdAt") == memory.pop("updatedAt")
    assert memory == {
        "key": None,
        "value": "Cats purr",
        "summary": None,
        "category": "fact",
        "tags": [],
        "importance": 6,
        "pinned": False,
        "expiresAt": None,
        "validFrom": None,
        "validTo": None,
        "replacedBy": None,
        "source": "manual",
        "sources": [],
        "scope": "project",
        "agentId": None,
        "workspaceId": cast.workspace.public_id,
        "author": {"id": cast.editor.public_id, "username": "eddie"},
        "editedBy": None,
        "imported": False,
        "importedBy": None,
        "duplicate": False,
    }
    stored = Memory.objects.get()
    assert (stored.author, stored.workspace, stored.source_type) == (cast.editor, cast.workspace, "user")


def test_every_field_comes_back_as_it_was_sent(api: Api) -> None:
    sent = {
        "key": "deadline",
        "value": "The deadline is March 15",
        "summary": "March 15",
        "category": "event",
        "tags": ["project", "dates"],
        "importance": 9,
        "pinned": True,
        "expiresAt": "2099-03-15T12:00:00.000000Z",
        "source": "importer",
        "scope": "global",
    }
    saved = save(api, **sent)
    assert {name: saved[name] for name in sent} == sent
    read = api.get(f"memories/{saved['id']}").json()
    assert {name: read[name] for name in sent} == sent
    assert api.get("memories").json()["items"] == [read]


def test_importance_is_mapped_linearly() -> None:
    assert [importance_outside(importance_inside(number)) for number in range(1, 11)] == list(range(1, 11))
    assert (importance_inside(1), importance_inside(10)) == (0, 1)
    assert [importance_outside(part) for part in (0, 0.5, 1)] == [1, 6, 10]


def test_sources_are_mapped_both_ways(api: Api) -> None:
    for source, stored in (("manual", "user"), ("auto", "auto_chat"), ("slack bot", "slack bot")):
        saved = save(api, f"Cats purr, says {source}", source=source)
        assert saved["source"] == source
        assert Memory.objects.get(public_id=saved["id"]).source_type == stored, source


def test_both_spellings_of_the_expiry_are_taken(api: Api) -> None:
    soon, later = "2098-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"
    assert save(api, "Cats purr", expires_at=soon)["expiresAt"] == soon
    assert save(api, "Dogs bark", expires_at=soon, expiresAt=later)["expiresAt"] == later


def test_wrong_fields_are_refused_by_name(api: Api) -> None:
    for body, field in (
        ({}, "value"),
        ({"value": " "}, "value"),
        ({"value": "x" * 2001}, "value"),
        ({"value": "a", "content": "a"}, "content"),
        ({"value": "a", "importance": 0}, "importance"),
        ({"value": "a", "importance": 11}, "importance"),
        ({"value": "a", "importance": 0.5}, "importance"),
        ({"value": "a", "category": None}, "category"),
        ({"value": "a", "key": "x" * 201}, "key"),
        ({"value": "a", "tags": ["x"] * 21}, "tags"),
        ({"value": "a", "expiresAt": "tomorrow"}, "expiresAt"),
        ({"value": "a", "expires_at": "tomorrow"}, "expires_at"),
        ({"value": "a", "source": "x" * 51}, "source"),
        ({"value": "a", "scope": "workspace"}, "scope"),
        ({"value": "a", "dedupe": "never"}, "dedupe"),
        ({"value": "a", "workspaceId": "ws_1"}, "workspaceId"),
    ):
        refused = api.post("memories", body)
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, [field])
        assert not Memory.objects.exists()


def test_credentials_are_refused_in_every_field(api: Api) -> None:
    for field in ("value", "summary", "key", "category", "source", "tags"):
        secret = PROMISED["github personal"]
        body = {"value": "Cats purr", field: [secret] if field == "tags" else secret}
        refused = api.post("memories", body)
        assert (refused.status_code, error_of(refused)["code"]) == (422, "secret")
        assert list(error_of(refused)["fields"]) == [field]
        assert secret not in refused.content.decode()
        assert not Memory.objects.exists()


# Reading


def test_a_key_reads_its_workspace_and_its_makers_own_memories(api: Api, cast: Cast) -> None:
    shared = make_memory("Shared kettle", cast.owner, cast.workspace)
    mine = make_memory("My kettle", cast.editor, scope=Scope.USER)
    hidden = [
        make_memory("Another's kettle", cast.owner, scope=Scope.USER),
        make_memory("A kettle in my default workspace", cast.editor),
        make_memory("A kettle in another workspace", cast.stranger),
    ]
    assert {each["id"] for each in api.get("memories").json()["items"]} == {shared.public_id, mine.public_id}
    for memory in (shared, mine):
        assert api.get(f"memories/{memory.public_id}").status_code == 200
    for memory in hidden:
        assert api.get(f"memories/{memory.public_id}").status_code == 404
        assert api.patch(f"memories/{memory.public_id}", {"pinned": True}).status_code == 404
    assert set(found(api, "kettle", limit=50)) == {"Shared kettle", "My kettle"}


def test_a_session_reads_its_default_workspace_or_the_one_it_names(cast: Cast) -> None:
    session = Api(cast.editor, base=V1)
    here = make_memory("At home", cast.editor)
    there = make_memory("In the shared one", cast.owner, cast.workspace)
    asked = {"workspace_id": cast.workspace.public_id}
    assert [each["id"] for each in session.get("memories").json()["items"]] == [here.public_id]
    assert [each["id"] for each in session.get("memories", **asked).json()["items"]] == [there.public_id]
    assert session.get(f"memories/{there.public_id}").status_code == 404
    assert session.get(f"memories/{there.public_id}", **asked).status_code == 200
    assert save(session, "Cats purr")["workspaceId"] == default_workspace(cast.editor).public_id
    for unknown in ("ws_" + "a" * 24, "nonsense", cast.editor.public_id):
        assert session.get("memories", workspace_id=unknown).status_code == 404
    assert session.get("memories", workspace_id="\0").status_code == 422


def test_the_list_pages_newest_first_and_filters(api: Api, cast: Cast) -> None:
    now = timezone.now()
    for number in range(7):
        make_memory(f"Number {number}", cast.owner, cast.workspace, now=now + timedelta(seconds=number))
    pages = api.pages("memories", limit=3)
    assert [[each["value"][-1] for each in page] for page in pages] == [
        ["6", "5", "4"],
        ["3", "2", "1"],
        ["0"],
    ]
    save(api, "Tagged", tags=["tea", "cake"], category="preference", key="k", scope="global")
    for query in ({"tag": "tea"}, {"category": "preference"}, {"key": "k"}, {"scope": "global"}):
        assert [each["value"] for each in api.get("memories", **query).json()["items"]] == ["Tagged"], query
    assert len(api.get("memories", scope="project").json()["items"]) == 7
    cursor = api.get("memories", limit=1).json()["next_cursor"]
    other = Api(cast.editor, base=V1).get("memories", cursor=cursor)
    assert (other.status_code, error_of(other)["code"]) == (400, "bad_cursor")


# Changing


def test_what_is_left_out_stays_as_it_is(api: Api) -> None:
    saved = save(api, "The deadline is March 15", key="deadline", tags=["a"], importance=3)
    changed = api.patch(f"memories/{saved['id']}", {"value": "The deadline is May 2", "pinned": True}).json()
    assert changed["value"] == "The deadline is May 2" and changed["pinned"] is True
    for name in ("id", "key", "tags", "importance", "category", "scope", "source"):
        assert changed[name] == saved[name], name
    assert api.patch(f"memories/{saved['id']}", {"source": "x"}).status_code == 422
    save(api, "Lunch is at one", key="lunch")
    taken = api.patch(f"memories/{saved['id']}", {"key": "lunch"})
    assert (taken.status_code, list(error_of(taken)["fields"])) == (409, ["key"])
    secret = api.patch(f"memories/{saved['id']}", {"value": PROMISED["github personal"]})
    assert (secret.status_code, list(error_of(secret)["fields"])) == (422, ["value"])


# Recall


def test_recall_is_by_words_then_by_parts_of_words(api: Api) -> None:
    save(api, "The quarterly review is on Thursday", tags=["calendar"], summary="Meeting")
    save(api, "Olive likes bergamot tea")
    assert found(api, "reviews") == ["The quarterly review is on Thursday"]
    assert found(api, "calendar") == ["The quarterly review is on Thursday"]
    assert found(api, "meeting") == ["The quarterly review is on Thursday"]
    assert found(api, "ergamo") == ["Olive likes bergamot tea"]
    assert found(api, "  ") == [] and found(api, "tea", limit=0) == []
    answer = api.post("memories/recall", {"query": "tea"}).json()["memories"][0]
    assert answer["score"] > 0


def test_recall_gives_five_unless_told_and_fifty_at_most(api: Api, cast: Cast) -> None:
    drafts = [Draft(f"Tea number {number}", cast.workspace, cast.owner) for number in range(53)]
    save_memories(drafts, by=cast.owner, now=timezone.now(), near=False)
    assert [len(found(api, "tea", **limit)) for limit in ({}, {"limit": 7}, {"limit": 99})] == [5, 7, 50]
    assert len(found(api, "tea", limit=50, offset=50)) == 3


def test_a_save_of_the_same_key_updates_in_place(api: Api) -> None:
    first = save(api, "The deadline is March 15", key="deadline", pinned=True)
    again = api.post("memories", {"value": "The launch moved to May 2", "key": "deadline"})
    assert again.status_code == 200
    second = again.json()
    assert (second["id"], second["value"]) == (first["id"], "The launch moved to May 2")
    assert second["pinned"] is True and second["duplicate"] is False
    assert Memory.objects.count() == 1
    other = api.post("memories", {"value": "Lunch is at one", "key": "deadline", "scope": "global"})
    assert other.status_code == 201
    third = api.post("memories", {"value": "Tea is at five", "key": "deadline", "dedupe": "create"})
    assert third.status_code == 201
    assert set(Memory.objects.filter(key="deadline").values_list("content", flat=True)) == {
        "Lunch is at one",
        "Tea is at five",
    }


def test_of_equals_the_pinned_then_important_then_new_ones_lead(api: Api, cast: Cast) -> None:
    now = timezone.now()
    for tag, fields in (
        ("old", {}),
        ("new", {}),
        ("important", {"importance": 1.0}),
        ("pinned", {"pinned": True, "importance": 0.0}),
    ):
        make_memory("Tea time", cast.owner, cast.workspace, now=now, category=None, key=tag, **fields)
    edit_memory(Memory.objects.get(key="new"), by=None, now=now + timedelta(hours=1), importance=0.51)
    Memory.objects.filter(key="new").update(importance=0.5)
    memories = api.post("memories/recall", {"query": "tea"}).json()["memories"]
    assert [each["key"] for each in memories] == ["pinned", "important", "new", "old"]


# Deleting


def memory_of(cast: Cast) -> Memory:
    return make_memory("Cats purr", cast.owner, cast.workspace)


def test_keys_never_delete(cast: Cast) -> None:
    memory = memory_of(cast)
    for person in (cast.owner, cast.editor):
        api = Api(base=V1, key=make_key_text(person, cast.workspace))
        answers = [
            api.delete(f"memories/{memory.public_id}"),
            api.delete("memories", {"ids": [memory.public_id]}),
            Api(key=make_key_text(person, cast.workspace)).delete(
                f"workspaces/{cast.workspace.public_id}/memories/{memory.public_id}"
            ),
        ]
        assert {(each.status_code, error_of(each)["code"]) for each in answers} == {(403, "session_only")}
    memory.refresh_from_db()
    assert memory.deleted_at is None


def test_deleting_needs_the_password_once_more(cast: Cast) -> None:
    memory, session = memory_of(cast), Api(cast.editor, base=V1)
    path = f"memories/{memory.public_id}?workspace_id={cast.workspace.public_id}"
    bulk = f"memories?workspace_id={cast.workspace.public_id}"
    for refused in (session.delete(path), session.delete(bulk, {"ids": [memory.public_id]})):
        assert (refused.status_code, error_of(refused)["code"]) == (403, "reauthenticate")
    type_password_again(session.client)
    assert session.delete(path).status_code == 204
    assert session.delete(path).status_code == 404
    memory.refresh_from_db()
    assert memory.deleted_at is not None


def test_several_are_deleted_at_once_and_others_are_named_as_missing(cast: Cast) -> None:
    session = Api(cast.editor, base=V1)
    type_password_again(session.client)
    shared = [make_memory(f"Number {number}", cast.owner, cast.workspace) for number in range(3)]
    mine = make_memory("My own", cast.editor, scope=Scope.USER)
    hidden = make_memory("Another's own", cast.owner, scope=Scope.USER)
    elsewhere = make_memory("At home", cast.editor)
    gone = [shared[0].public_id, mine.public_id]
    missing = [hidden.public_id, elsewhere.public_id, "mem_nothing"]
    path = f"memories?workspace_id={cast.workspace.public_id}"
    answer = session.delete(path, {"ids": [*gone, *missing, gone[0]]})
    assert (answer.status_code, answer.json()) == (200, {"deleted": gone, "missing": missing})
    live = set(Memory.objects.live().values_list("public_id", flat=True))
    assert live == {shared[1].public_id, shared[2].public_id, hidden.public_id, elsewhere.public_id}
    for wrong in ([], ["x" * 33], ["mem_x"] * 101, [5], "mem_x", [None], ["\0"]):
        assert session.delete(path, {"ids": wrong}).status_code == 422, wrong
    viewer = Api(cast.viewer, base=V1)
    type_password_again(viewer.client)
    assert viewer.delete(path, {"ids": [shared[1].public_id]}).status_code == 403


# The memory routes of the chat API


# Validity


def test_validity_is_set_read_and_asked(api: Api, cast: Cast) -> None:
    older, newer = (save(api, f"The vault is at {bank}") for bank in ("Ava", "Bo"))
    at = f"memories/{older['id']}"
    wrong = api.patch(at, {"validFrom": "2026-03-01T00:00:00Z", "validTo": "2026-02-01T00:00:00Z"})
    assert (wrong.status_code, [*error_of(wrong)["fields"]]) == (422, ["validTo"])
    assert [*error_of(api.patch(at, {"validFrom": "March"}))["fields"]] == ["validFrom"]
    assert [*error_of(api.patch(at, {"replacedBy": older["id"]}))["fields"]] == ["replacedBy"]
    assert api.patch(at, {"replacedBy": "mem_" + "a" * 24}).status_code == 404
    begun = api.patch(at, {"validFrom": "2026-01-01T00:00:00Z"}).json()
    assert (begun["validFrom"], begun["validTo"]) == ("2026-01-01T00:00:00.000000Z", None)
    ended = api.patch(at, {"replacedBy": newer["id"]}).json()
    assert (ended["replacedBy"], ended["validTo"] > ended["validFrom"]) == (newer["id"], True)
    assert ended == api.get(at).json() == api.get("memories").json()["items"][1]
    assert found(api, "vault") == ["The vault is at Bo"]
    assert len(found(api, "vault", as_of="2026-02-01T00:00:00Z")) == 2
    assert found(api, "vault", as_of="2025-02-01T00:00:00Z") == ["The vault is at Bo"]
    again = api.patch(at, {"replacedBy": None}).json()
    assert (again["replacedBy"], again["validTo"]) == (None, None)


def test_a_memory_is_saved_with_when_it_holds(api: Api) -> None:
    said = {"validFrom": "2025-01-01T00:00:00.000000Z", "validTo": "2025-06-30T23:59:59.000000Z"}
    saved = save(api, "The vault is at Ava", **said)
    assert {name: saved[name] for name in said} == said
    assert found(api, "vault") == []
    wrong = api.post("memories", {"value": "Tea", "validFrom": said["validTo"], "validTo": said["validFrom"]})
    assert (wrong.status_code, [*error_of(wrong)["fields"]]) == (422, ["validTo"])
