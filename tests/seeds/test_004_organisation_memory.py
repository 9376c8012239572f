"""Seed 004: organisation memory under /api/v1, for programs with an API key."""

from collections.abc import Callable
from typing import Any

import pytest

from memories.models import Memory
from tests.api import V1, Api, type_password_again
from tests.conftest import Cast
from tests.factories import make_agent, make_key_text, make_workspace
from tests.seeds.shown_elsewhere import without_a_test

pytestmark = pytest.mark.django_db
OF_V1 = "tests/memories/api/test_api_v1.py::"
SHOWN = {
    "every field of a memory": OF_V1 + "test_a_memory_has_the_fields_of_the_organisation_api",
    "what is sent comes back": OF_V1 + "test_every_field_comes_back_as_it_was_sent",
    "a value has a character limit": OF_V1 + "test_wrong_fields_are_refused_by_name",
    "importance from 1 to 10": OF_V1 + "test_importance_is_mapped_linearly",
    "pinned then important then new": OF_V1 + "test_of_equals_the_pinned_then_important_then_new_ones_lead",
    "files are attached": "tests/memories/assets/test_assets_api.py::test_a_file_is_kept_and_comes_back_byte_by_byte",
    "memory nodes": "tests/memories/nodes/test_nodes_api.py::test_a_node_has_its_fields",
    "nodes are deleted by a session alone": "tests/memories/nodes/test_nodes_api.py"
    "::test_deleting_takes_a_session_whose_password_was_typed_again",
    "five results and fifty at most": OF_V1 + "test_recall_gives_five_unless_told_and_fifty_at_most",
    "words then parts of words": OF_V1 + "test_recall_is_by_words_then_by_parts_of_words",
    "deleting needs a fresh password": OF_V1 + "test_deleting_needs_the_password_once_more",
    "keys never delete": OF_V1 + "test_keys_never_delete",
    "several are deleted at once": OF_V1 + "test_several_are_deleted_at_once_and_others_are_named_as_missing",
    "a key updates in place and create forces a row": OF_V1 + "test_a_save_of_the_same_key_updates_in_place",
}
Program = Callable[..., Api]


def test_promises_shown_elsewhere_have_their_tests() -> None:
    assert without_a_test(SHOWN) == []


@pytest.fixture
def api(cast: Cast) -> Api:
    return Api(base=V1, key=make_key_text(cast.owner, cast.workspace))


def save(api: Api, value: str, **fields: Any) -> dict[str, Any]:
    made = api.post("memories", {"value": value, **fields})
    assert made.status_code == 201, made.content
    return dict(made.json())


def found(api: Api, query: str, **fields: Any) -> list[str]:
    answer = api.post("memories/recall", {"query": query, **fields})
    return [each["value"] for each in answer.json()["memories"]]


# --- Contents


def test_a_memory_is_looked_up_by_its_key_and_by_its_tags(api: Api) -> None:
    save(api, "Tea at four", key="tea", tags=["habit"])
    save(api, "Cats purr")
    for query in ({"key": "tea"}, {"tag": "habit"}):
        assert [each["value"] for each in api.get("memories", **query).json()["items"]] == ["Tea at four"]


def test_the_category_is_free_and_fact_without_one(api: Api) -> None:
    assert save(api, "Cats purr")["category"] == "fact"
    assert save(api, "Tea at four", category="ritual of mine")["category"] == "ritual of mine"


def test_an_expired_memory_is_found_nowhere(api: Api) -> None:
    made = save(api, "Cats purr", expiresAt="2001-01-01T00:00:00Z")
    assert found(api, "cats") == [] == api.get("memories").json()["items"]
    assert api.get(f"memories/{made['id']}").status_code == 404


def test_a_memory_names_where_it_came_from(api: Api) -> None:
    assert save(api, "Cats purr")["source"] == "manual"
    assert save(api, "Dogs bark", source="auto")["source"] == "auto"
    assert save(api, "Tea at four", source="crawler")["source"] == "crawler"
    assert api.post("memories", {"value": "Owls hoot", "source": "x" * 51}).status_code == 422


def test_a_memory_has_sources(api: Api) -> None:
    source = {"type": "message", "id": "msg_" + "a" * 24}
    assert save(api, "Cats purr", sources=[source])["sources"] == [source]


# --- Scopes


def test_global_is_its_persons_in_every_workspace(cast: Cast, api: Api) -> None:
    save(api, "Cats purr", scope="global")
    elsewhere = make_workspace(owner=cast.owner, editor=cast.editor, name="Elsewhere")
    assert found(Api(base=V1, key=make_key_text(cast.owner, elsewhere)), "cats") == ["Cats purr"]
    assert found(Api(base=V1, key=make_key_text(cast.editor, cast.workspace)), "cats") == []


def test_project_is_everybodys_in_the_workspace_and_nowhere_else(cast: Cast, api: Api) -> None:
    save(api, "Cats purr", scope="project")
    assert found(Api(base=V1, key=make_key_text(cast.viewer, cast.workspace, scope="read")), "cats") == [
        "Cats purr"
    ]
    elsewhere = make_workspace(owner=cast.owner, name="Elsewhere")
    assert found(Api(base=V1, key=make_key_text(cast.owner, elsewhere)), "cats") == []


def test_agent_is_that_assistants_alone(cast: Cast, api: Api) -> None:
    mine, other = (make_agent(cast.owner, cast.workspace).public_id for _ in range(2))
    save(api, "Cats purr", scope="agent", agentId=mine)
    assert found(api, "cats", agentId=mine) == ["Cats purr"]
    assert found(api, "cats", agentId=other) == [] == found(api, "cats")


# --- How recall works


@pytest.mark.parametrize("field", ["key", "summary", "value", "category", "tags"])
def test_every_field_is_searched(api: Api, field: str) -> None:
    fields = {"value": "Cats purr"} | {field: ["zebra"] if field == "tags" else "zebra"}
    made = api.post("memories", fields).json()
    [hit] = api.post("memories/recall", {"query": "zebra"}).json()["memories"]
    assert hit["id"] == made["id"]


def test_a_vector_lies_beside_the_row(api: Api) -> None:
    made = save(api, "Cats purr")
    assert Memory.objects.get(public_id=made["id"]).embeddings.filter(live=True).exists()


# --- Deleting


def test_a_session_with_a_fresh_password_deletes_one_and_many(cast: Cast, api: Api) -> None:
    one, two = (save(api, text)["id"] for text in ("Cats purr", "Dogs bark"))
    session = Api(cast.owner, base=V1)
    type_password_again(session.client)
    place = f"?workspace_id={cast.workspace.public_id}"
    assert session.delete(f"memories/{one}{place}").status_code == 204
    assert session.delete(f"memories{place}", {"ids": [two]}).json()["deleted"] == [two]
    assert api.get("memories").json()["items"] == []


# --- Manual save and auto


def test_saves_are_deduplicated_unless_told_otherwise(api: Api) -> None:
    first = save(api, "Cats purr", key="cats")
    again = api.post("memories", {"value": "Cats purr a lot", "key": "cats"})
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    assert save(api, "Cats purr", key="cats", dedupe="create")["id"] != first["id"]


# --- Intended differences (docs/conformance.md)


def test_a_pinned_memory_leads_among_equals_and_is_found_by_what_it_says_alone(api: Api) -> None:
    save(api, "Cats purr", pinned=True)
    save(api, "Tea at four")
    assert found(api, "tea") == ["Tea at four"]
