"""Memory nodes over REST: fields, permissions, changes, and neighbours."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memories import topics
from memories.models import Memory, MemoryNode, NodeMemory, NodeRelation, Scope
from memories.writing.changing import restore_memory
from memories.writing.gate import delete_memory
from tests.api import V1, Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_key_text, make_memory, make_node, make_user, make_workspace
from tests.memories.secret_samples import PROMISED

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cast: Cast) -> Api:
    """The editor's API key for the shared workspace."""
    return Api(base=V1, key=make_key_text(cast.editor, cast.workspace))


def make(api: Api, name: str, **fields: Any) -> Any:
    made = api.post("memory-nodes", {"name": name, **fields})
    assert made.status_code == 201, made.json()
    return made.json()


def relate(api: Api, source: str, relation: str, target: str) -> Any:
    return api.post(f"memory-nodes/{source}/relations", {"nodeId": target, "relation": relation})


def session(cast: Cast, person: Any) -> Any:
    def read(path: str, **query: Any) -> Any:
        return Api(person, base=V1).get(path, workspace_id=cast.workspace.public_id, **query).json()

    return read


# Creating and changing


def test_a_node_has_its_fields(api: Api, cast: Cast) -> None:
    made = make(api, "  Maria   Silva ", kind="person", description=" Leads\nApollo ")
    assert made.pop("id").startswith("node_")
    assert made.pop("createdAt") == made.pop("updatedAt")
    assert made == {
        "name": "Maria Silva",
        "kind": "person",
        "description": "Leads\nApollo",
        "workspaceId": cast.workspace.public_id,
        "memoryCount": 0,
        "relationCount": 0,
    }
    assert MemoryNode.objects.get().created_by == cast.editor


def test_names_are_compared_without_case(api: Api) -> None:
    cases = [("Straße", "STRASSE"), ("a b", "A  B")]
    for first, again in cases:
        make(api, first)
        refused = api.post("memory-nodes", {"name": again})
        assert (refused.status_code, error_of(refused)["fields"]) == (409, {"name": "is taken"}), again
        other = make(api, "Other")
        taken = api.patch(f"memory-nodes/{other['id']}", {"name": again})
        assert taken.status_code == 409, again
        assert MemoryNode.objects.count() == 2, again
        MemoryNode.objects.all().delete()


def test_a_name_is_free_in_another_workspace_and_for_itself(api: Api, cast: Cast) -> None:
    elsewhere = make_workspace(owner=cast.editor, name="Other")
    make_node(cast.editor, elsewhere, name="Apollo")
    made = make(api, "Apollo")
    renamed = api.patch(f"memory-nodes/{made['id']}", {"name": "APOLLO", "kind": "project"})
    assert (renamed.status_code, renamed.json()["name"], renamed.json()["kind"]) == (200, "APOLLO", "project")


@pytest.mark.django_db(transaction=True)
def test_two_of_one_name_at_once_make_one(cast: Cast) -> None:
    statuses: list[int] = []
    texts = [make_key_text(cast.editor, cast.workspace) for _ in range(4)]

    def ask(text: str) -> None:
        statuses.append(Api(base=V1, key=text).post("memory-nodes", {"name": "Apollo"}).status_code)
        connection.close()

    threads = [threading.Thread(target=ask, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 409, 409, 409]
    assert MemoryNode.objects.count() == 1


def test_wrong_fields_are_refused_by_name(api: Api) -> None:
    for body, field in (
        ({}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "\u2003"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a", "kind": "x" * 51}, "kind"),
        ({"name": "a", "description": "x" * 1001}, "description"),
        ({"name": "a", "color": "red"}, "color"),
        ({"name": "a", "id": "node_1"}, "id"),
    ):
        refused = api.post("memory-nodes", body)
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, [field])
        assert not MemoryNode.objects.exists()


def test_credentials_are_refused_everywhere(api: Api) -> None:
    secret = PROMISED["github personal"]
    first, second = make(api, "One"), make(api, "Two")
    for body in ({"name": secret}, {"name": "Key", "kind": secret}, {"name": "Key", "description": secret}):
        refused = api.post("memory-nodes", body)
        assert (refused.status_code, error_of(refused)["code"]) == (422, "secret")
        assert secret not in refused.content.decode()
    assert api.patch(f"memory-nodes/{first['id']}", {"description": secret}).status_code == 422
    assert error_of(relate(api, first["id"], secret, second["id"]))["code"] == "secret"
    assert MemoryNode.objects.count() == 2 and not NodeRelation.objects.exists()


def test_a_credential_cut_in_two_is_refused(api: Api) -> None:
    body = {"name": "api_key", "description": "kJ8sQ2mVx7LpR4tZ9wYb3NcD6fGh1A"}
    assert error_of(api.post("memory-nodes", body))["code"] == "secret"
    made = make(api, "api_key")
    assert api.patch(f"memory-nodes/{made['id']}", {"description": body["description"]}).status_code == 422


def test_the_longest_and_strangest_names_are_stored(api: Api) -> None:
    for name in (
        "ﷺ" * 100,
        "\U0001f469\u200d\U0001f680" * 33,
        "שלום \u202eabc",
    ):
        made = make(api, name)
        assert made["name"] == name
        assert [each["id"] for each in api.get("memory-nodes", name=name).json()["items"]] == [made["id"]]


# Lists


def test_the_list_is_by_name_in_pages_and_narrowed(api: Api, cast: Cast) -> None:
    for name, kind in (("beta", "project"), ("Alpha", "Project"), ("gamma", ""), ("Öl", "thing")):
        make(api, name, kind=kind)
    make_node(cast.editor, make_workspace(owner=cast.editor, name="Other"), name="Elsewhere")
    pages = api.pages("memory-nodes", limit=3)
    assert [[each["name"] for each in page] for page in pages] == [["Alpha", "beta", "gamma"], ["Öl"]]
    assert [each["name"] for each in api.get("memory-nodes", kind="PROJECT").json()["items"]] == [
        "Alpha",
        "beta",
    ]
    assert [each["name"] for each in api.get("memory-nodes", name="öL").json()["items"]] == ["Öl"]
    assert api.get("memory-nodes", name="al").json()["items"] == []
    assert api.get("memory-nodes", name="x" * 101).status_code == 422


# Memories


def test_linking_and_unlinking(api: Api, cast: Cast) -> None:
    node, memory = make(api, "Maria"), make_memory("Maria likes tea", cast.owner, cast.workspace)
    path, body = f"memory-nodes/{node['id']}/memories", {"memoryId": memory.public_id}
    linked = api.post(path, body)
    assert (linked.status_code, linked.json()["memoryCount"]) == (201, 1)
    assert api.post(path, body).status_code == 200
    assert NodeMemory.objects.count() == 1
    assert [each["value"] for each in api.get(path).json()["items"]] == ["Maria likes tea"]
    detail = api.get(f"memory-nodes/{node['id']}").json()
    assert [each["id"] for each in detail["memories"]] == [memory.public_id]
    for _ in range(2):
        unlinked = api.post(f"{path}/unlink", body)
        assert (unlinked.status_code, unlinked.json()["memoryCount"]) == (200, 0)
    assert Memory.objects.live().filter(pk=memory.pk).exists()


def test_a_forgotten_or_expired_memory_is_gone_from_nodes_at_once_and_comes_back(
    api: Api, cast: Cast
) -> None:
    node = make(api, "Maria")
    forgotten = make_memory("Maria likes tea", cast.owner, cast.workspace)
    expired = make_memory("Maria is away", cast.owner, cast.workspace)
    for memory in (forgotten, expired):
        api.post(f"memory-nodes/{node['id']}/memories", {"memoryId": memory.public_id})
    delete_memory(forgotten, by=cast.owner, now=timezone.now())
    Memory.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    detail = api.get(f"memory-nodes/{node['id']}").json()
    assert (detail["memories"], detail["memoryCount"]) == ([], 0)
    assert api.get(f"memory-nodes/{node['id']}/memories").json()["items"] == []
    refused = api.post(f"memory-nodes/{node['id']}/memories", {"memoryId": forgotten.public_id})
    assert refused.status_code == 404
    restore_memory(forgotten, by=cast.owner, now=timezone.now())
    assert api.get(f"memory-nodes/{node['id']}").json()["memoryCount"] == 1


def test_a_personal_memory_in_a_node_is_seen_and_counted_by_its_owner_alone(cast: Cast) -> None:
    node = make_node(cast.owner, cast.workspace, name="Maria")
    personal = make_memory("Maria owes me ten euros", cast.editor, scope=Scope.USER)
    shared = make_memory("Maria likes tea", cast.owner, cast.workspace)
    editor = Api(base=V1, key=make_key_text(cast.editor, cast.workspace))
    for memory in (personal, shared):
        linked = editor.post(f"memory-nodes/{node.public_id}/memories", {"memoryId": memory.public_id})
        assert linked.status_code == 201
    assert linked.json()["memoryCount"] == 2
    for person, count in ((cast.editor, 2), (cast.owner, 1), (cast.viewer, 1)):
        read = session(cast, person)
        detail = read(f"memory-nodes/{node.public_id}")
        listed = read("memory-nodes")["items"][0]
        assert (detail["memoryCount"], listed["memoryCount"], len(detail["memories"])) == (count,) * 3
        page = read(f"memory-nodes/{node.public_id}/memories")["items"]
        assert ("ten euros" in str(page)) == (person == cast.editor)
    other = Api(base=V1, key=make_key_text(cast.owner, cast.workspace))
    for way in ("memories", "memories/unlink"):
        path = f"memory-nodes/{node.public_id}/{way}"
        assert other.post(path, {"memoryId": personal.public_id}).status_code == 404
    assert NodeMemory.objects.count() == 2


def test_memories_of_another_workspace_cannot_be_linked(api: Api, cast: Cast) -> None:
    node, elsewhere = make(api, "Maria"), make_workspace(owner=cast.editor, name="Other")
    memory = make_memory("Maria likes tea", cast.editor, elsewhere)
    refused = api.post(f"memory-nodes/{node['id']}/memories", {"memoryId": memory.public_id})
    assert refused.status_code == 404
    assert not NodeMemory.objects.exists()


# Relations and neighbours


def test_relations_have_a_direction_and_a_type(api: Api) -> None:
    maria, apollo = make(api, "Maria"), make(api, "Apollo")
    made = relate(api, maria["id"], " works   on ", apollo["id"])
    assert made.status_code == 201
    relation = made.json()
    assert relation.pop("createdAt")
    assert relation == {
        "source": {"id": maria["id"], "name": "Maria"},
        "relation": "works on",
        "target": {"id": apollo["id"], "name": "Apollo"},
    }
    assert relate(api, maria["id"], "works on", apollo["id"]).status_code == 200
    assert relate(api, maria["id"], "leads", apollo["id"]).status_code == 201
    assert relate(api, apollo["id"], "works on", maria["id"]).status_code == 201
    page = api.get(f"memory-nodes/{apollo['id']}/relations").json()["items"]
    assert [(each["source"]["name"], each["relation"]) for each in page] == [
        ("Maria", "works on"),
        ("Maria", "leads"),
        ("Apollo", "works on"),
    ]
    assert api.get(f"memory-nodes/{apollo['id']}").json()["relationCount"] == 3
    body = {"nodeId": apollo["id"], "relation": "works on"}
    for _ in range(2):
        taken = api.post(f"memory-nodes/{maria['id']}/relations/unlink", body)
        assert (taken.status_code, taken.json()["relationCount"]) == (200, 2)


def test_wrong_relation_types_are_refused(api: Api) -> None:
    one, two = make(api, "One"), make(api, "Two")
    for relation in ("", "  ", "x" * 81, "a\0b", 5):
        refused = relate(api, one["id"], relation, two["id"])
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["relation"])


def test_a_node_is_related_to_others_of_its_workspace_only(api: Api, cast: Cast) -> None:
    one = make(api, "One")
    elsewhere = make_node(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    assert relate(api, one["id"], "knows", one["id"]).status_code == 422
    assert relate(api, one["id"], "knows", elsewhere.public_id).status_code == 404
    assert not NodeRelation.objects.exists()


def around(api: Api, node: Any, **query: Any) -> dict[str, int]:
    found = api.get(f"memory-nodes/{node['id']}/neighbours", **query).json()
    return {each["name"]: each["depth"] for each in found["nodes"]}


def test_neighbours_are_reached_both_ways_in_so_many_steps_and_through_cycles(api: Api) -> None:
    a, b, c, d, e = (make(api, name) for name in "abcde")
    relate(api, a["id"], "to", b["id"])
    relate(api, c["id"], "to", b["id"])  # against its direction
    relate(api, c["id"], "to", d["id"])
    relate(api, d["id"], "to", e["id"])
    relate(api, b["id"], "back", a["id"])
    relate(api, c["id"], "to", a["id"])  # a cycle and a shortcut
    assert around(api, a) == {"b": 1, "c": 1}
    assert around(api, a, depth=2) == {"b": 1, "c": 1, "d": 2}
    assert around(api, a, depth=3) == {"b": 1, "c": 1, "d": 2, "e": 3}
    found = api.get(f"memory-nodes/{a['id']}/neighbours", depth=2).json()
    assert (len(found["relations"]), found["truncated"]) == (5, False)
    found = api.get(f"memory-nodes/{a['id']}/neighbours", depth=3, limit=2).json()
    assert ([each["name"] for each in found["nodes"]], found["truncated"]) == (["b", "c"], True)
    assert {each["source"]["name"] for each in found["relations"]} <= {"a", "b", "c"}


def test_neighbours_are_bounded(api: Api) -> None:
    node = make(api, "One")
    for query in ({"depth": 0}, {"depth": 4}, {"depth": "x"}, {"limit": 0}, {"limit": 201}):
        refused = api.get(f"memory-nodes/{node['id']}/neighbours", **query)
        assert (refused.status_code, set(error_of(refused)["fields"])) == (422, set(query))


def test_neighbours_of_a_large_hub_are_truncated(api: Api, cast: Cast) -> None:
    """Each of the hub's neighbours is related to the next, so that three steps have many paths."""
    rows = [MemoryNode(workspace=cast.workspace, name=f"n{at}", folded=f"n{at}") for at in range(220)]
    made = MemoryNode.objects.bulk_create(rows)
    hub = make(api, "Hub")
    start = MemoryNode.objects.get(public_id=hub["id"])
    relations = [NodeRelation(source=start, target=each, relation="has") for each in made]
    relations += [
        NodeRelation(source=one, target=other, relation="next")
        for step in (1, 7, 50)
        for one, other in zip(made, made[step:], strict=False)
    ]
    NodeRelation.objects.bulk_create(relations)
    found = api.get(f"memory-nodes/{hub['id']}/neighbours", depth=3, limit=200).json()
    assert len(found["nodes"]) == 200 and found["truncated"] is True
    assert {each["depth"] for each in found["nodes"]} == {1}
    far = api.get(f"memory-nodes/{made[0].public_id}/neighbours", depth=3, limit=200).json()
    assert far["truncated"] and far["nodes"][0]["depth"] == 1


# Permissions


def test_deleting_takes_a_session_whose_password_was_typed_again(api: Api, cast: Cast) -> None:
    node, memory = make(api, "Maria"), make_memory("Maria likes tea", cast.owner, cast.workspace)
    api.post(f"memory-nodes/{node['id']}/memories", {"memoryId": memory.public_id})
    relate(api, node["id"], "knows", make(api, "Sam")["id"])
    path = f"memory-nodes/{node['id']}?workspace_id={cast.workspace.public_id}"
    assert error_of(api.delete(path))["code"] == "session_only"
    person = Api(cast.editor, base=V1)
    assert error_of(person.delete(path))["code"] == "reauthenticate"
    type_password_again(person.client)
    assert person.delete(path).status_code == 204
    assert person.delete(path).status_code == 404
    assert [node.name for node in MemoryNode.objects.all()] == ["Sam"]
    assert not NodeRelation.objects.exists() and not NodeMemory.objects.exists()
    assert Memory.objects.live().filter(pk=memory.pk).exists()


def test_who_left_sees_nothing_and_their_personal_links_stay_theirs(cast: Cast) -> None:
    leaver = make_user("leo")
    cast.workspace.memberships.create(user=leaver, role="editor")
    node = make_node(cast.owner, cast.workspace)
    topics.link_memory(node, make_memory("Mine", leaver, scope=Scope.USER), now=timezone.now())
    cast.workspace.memberships.filter(user=leaver).delete()
    gone = Api(leaver, base=V1).get(f"memory-nodes/{node.public_id}", workspace_id=cast.workspace.public_id)
    assert gone.status_code == 404
    assert session(cast, cast.owner)(f"memory-nodes/{node.public_id}")["memoryCount"] == 0
