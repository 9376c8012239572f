"""The pages of memory nodes: contents, permissions, actions, and query counts."""

import json
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from memories import topics
from memories.judging.extraction.with_language_model import parse_candidates
from memories.models import Memory, MemoryNode, NodeMemory, NodeRelation, Scope
from memories.topics import merge_topics, suggest_merges, suggest_topics
from memories.views.topics import NODES_SHOWN
from memories.writing.gate import delete_memory, edit_memory
from tests.api import V1, Api, type_password_again
from tests.conftest import Cast
from tests.factories import make_memory, make_node, make_workspace
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import User

pytestmark = pytest.mark.django_db


def url(name: str, cast: Cast, node: MemoryNode | None = None) -> str:
    return reverse(f"memories:{name}", args=[cast.workspace.public_id, *([node.public_id] if node else [])])


def shown(user: User, address: str, **query: str) -> str:
    response = signed_in(user).get(address, query)
    assert response.status_code == 200
    return response.content.decode()


def drawing(page: str) -> dict[str, Any]:
    from html import unescape

    return json.loads(unescape(page.split('data-map="')[1].split('"')[0]))


def test_a_node_is_made_changed_and_refused_with_its_reason(cast: Cast) -> None:
    client = signed_in(cast.editor)
    made = client.post(url("nodes", cast), {"name": "Apollo", "kind": "project", "description": "Spring"})
    node = MemoryNode.objects.get()
    assert (made.status_code, made["Location"]) == (302, url("node", cast, node))
    again = client.post(url("nodes", cast), {"name": "APOLLO"})
    assert (again.status_code, "is taken" in again.content.decode()) == (422, True)
    other = make_node(cast.editor, cast.workspace, name="Maria")
    renamed = client.post(url("node", cast, other), {"name": "apollo"})
    assert (renamed.status_code, "is taken" in renamed.content.decode()) == (422, True)
    assert "<h1><bdi>Maria</bdi></h1>" in renamed.content.decode()
    assert client.post(url("node", cast, other), {"name": "Maria Silva", "kind": "person"}).status_code == 302
    assert MemoryNode.objects.get(pk=other.pk).kind == "person"


def test_map_and_lists_say_the_same(cast: Cast) -> None:
    maria, apollo = (make_node(cast.editor, cast.workspace, name=name) for name in ("Maria", "Apollo"))
    topics.relate(maria, apollo, "works on", now=timezone.now())
    page = shown(cast.viewer, url("nodes", cast))
    drawn = drawing(page)
    assert [node["name"] for node in drawn["nodes"]] == ["Apollo", "Maria"]
    assert drawn["nodes"][0]["url"] == url("node", cast, apollo)
    assert drawn["relations"] == [[maria.public_id, "works on", apollo.public_id]]
    words = page.split("The map in words")[1].split("</ul>")[0]
    assert words.index("Maria") < words.index("works on") < words.index("Apollo")
    around = drawing(shown(cast.viewer, url("node", cast, maria)))
    assert [node["name"] for node in around["nodes"]] == ["Maria", "Apollo"]


def test_nodes_are_searched_and_paged_by_name(cast: Cast) -> None:
    for at in range(NODES_SHOWN + 3):
        make_node(cast.editor, cast.workspace, name=f"Node {at:03}", kind="Robot" if at == 7 else "")
    first = shown(cast.viewer, url("nodes", cast))
    assert "Node 049" in first and "Node 050" not in first.split('id="all-nodes"')[1]
    last = MemoryNode.objects.get(name="Node 049").public_id
    assert f"after={last}" in first
    rest = shown(cast.viewer, url("nodes", cast), after=last)
    assert "Node 050" in rest and "Node 049" not in rest
    assert "Node 007" in shown(cast.viewer, url("nodes", cast), q="rOBot")
    found = shown(cast.viewer, url("nodes", cast), q="NODE 01")
    assert "Node 010" in found and "Node 020" not in found
    assert "There are no more" in shown(cast.viewer, url("nodes", cast), after="node_nowhere")
    assert "holds “<b>%”" not in shown(cast.viewer, url("nodes", cast), q="<b>%")


def test_a_memory_is_found_linked_and_unlinked(cast: Cast) -> None:
    node, client = make_node(cast.owner, cast.workspace, name="Maria"), signed_in(cast.editor)
    memory = make_memory("Maria likes green tea", cast.owner, cast.workspace)
    make_memory("Maria's salary", cast.owner, scope=Scope.USER)
    make_memory("Elsewhere Maria likes", cast.editor, make_workspace(owner=cast.editor, name="Other"))
    found = client.get(url("node_find", cast, node), {"q": "maria likes"}).content.decode()
    assert memory.public_id in found and "Elsewhere" not in found and "salary" not in found
    assert client.get(url("node_find", cast, node), {"q": " "}).content.decode().strip() == ""
    body = {"memory": memory.public_id}
    assert client.post(url("node_link", cast, node), body)["Location"].endswith("#memories")
    assert "green tea" in shown(cast.viewer, url("node", cast, node))
    found = client.get(url("node_find", cast, node), {"q": "maria likes"}).content.decode()
    assert "contains all these words" in found
    assert client.post(url("node_unlink", cast, node), body).status_code == 302
    assert "green tea" not in shown(cast.viewer, url("node", cast, node))
    assert Memory.objects.live().filter(pk=memory.pk).exists()


def test_a_personal_memory_on_the_page_is_its_owners_alone(cast: Cast) -> None:
    node = make_node(cast.owner, cast.workspace, name="Maria")
    personal = make_memory("Maria owes me ten euros", cast.editor, scope=Scope.USER)
    assert (
        signed_in(cast.editor).post(url("node_link", cast, node), {"memory": personal.public_id}).status_code
        == 302
    )
    own = shown(cast.editor, url("node", cast, node))
    assert "ten euros" in own and "only you see it" in own and "1 memory ·" in own
    for person in (cast.owner, cast.viewer):
        page = shown(person, url("node", cast, node))
        assert "ten euros" not in page and "0 memories ·" in page
        assert drawing(shown(person, url("nodes", cast)))["nodes"][0]["memories"] == 0
    for way in ("node_link", "node_unlink"):
        refused = signed_in(cast.owner).post(url(way, cast, node), {"memory": personal.public_id})
        assert refused.status_code == 404
    assert NodeMemory.objects.count() == 1


def test_a_relation_is_made_by_name_refused_and_removed(cast: Cast) -> None:
    maria, apollo = (make_node(cast.owner, cast.workspace, name=name) for name in ("Maria", "Apollo"))
    client = signed_in(cast.editor)
    made = client.post(url("node_relate", cast, maria), {"relation": "works on", "other": " aPOLLO "})
    assert made["Location"].endswith("#relations")
    relation = NodeRelation.objects.get()
    assert (relation.source, relation.relation, relation.target) == (maria, "works on", apollo)
    for body, why in (
        ({"relation": "knows", "other": "Nobody"}, "no topic with this name"),
        ({"relation": "", "other": "Apollo"}, "required"),
        ({"relation": "is", "other": "Maria"}, "cannot be related to itself"),
        ({"relation": "x" * 81, "other": "Apollo"}, "at most 80"),
    ):
        refused = client.post(url("node_relate", cast, maria), body)
        assert (refused.status_code, why in refused.content.decode()) == (422, True), body
    body = {"source": maria.public_id, "target": apollo.public_id, "relation": "works on"}
    assert client.post(url("node_unrelate", cast, apollo), body).status_code == 302
    assert not NodeRelation.objects.exists()


def test_deleting_asks_for_the_password(cast: Cast) -> None:
    node, client = make_node(cast.owner, cast.workspace, name="Maria"), signed_in(cast.editor)
    asked = client.post(url("node_delete", cast, node))
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    assert client.get(url("node_delete", cast, node))["Location"] == url("node", cast, node) + "#danger"
    assert MemoryNode.objects.exists()
    type_password_again(client)
    assert client.post(url("node_delete", cast, node))["Location"] == url("nodes", cast)
    assert not MemoryNode.objects.exists()


def test_names_that_recur_are_offered_and_fill_the_topic(cast: Cast) -> None:
    make_memory("Maria leads the launch", cast.owner, cast.workspace)
    make_memory("The launch was planned by Maria Lopez", cast.owner, cast.workspace)
    named = make_memory("We asked Maria about the venue", cast.owner, cast.workspace)
    make_memory("Der Umzug ist im März, sagt der Umzug", cast.owner, cast.workspace)
    make_memory("Ask Zelda first, then Zelda", cast.owner, cast.workspace, scope=Scope.USER)
    make_memory("Call Zelda", cast.owner, cast.workspace, scope=Scope.USER)
    assert suggest_topics(cast.workspace, cast.owner) == [("Maria", 2)]
    assert "Make a topic" in shown(cast.editor, url("nodes", cast))
    assert "Make a topic" not in shown(cast.viewer, url("nodes", cast))

    signed_in(cast.editor).post(url("nodes", cast), {"name": "Maria", "gathers_by_name": "on"})
    topic = MemoryNode.objects.get()
    assert topics.gathered(topic, cast.viewer).count() == 3
    make_memory("Mariann is another person", cast.owner, cast.workspace)
    later = make_memory("Maria's flight lands at nine", cast.owner, cast.workspace)
    assert set(topics.gathered(topic, cast.viewer)) >= {named, later}
    assert topics.gathered(topic, cast.viewer).count() == 4
    assert suggest_topics(cast.workspace, cast.owner) == []


def test_names_that_the_model_gave_are_suggested_too(cast: Cast) -> None:
    """Such a name needs no capital, but must occur in the memory's current text; an import may contain anything."""
    [read] = parse_candidates(
        '{"memories": [{"text": "The pizza oven costs 900 euros", "about": ["pizza oven", "Ann"]}]}'
    )
    assert read.details == {"about": ["pizza oven"]}
    for text in ("The pizza oven costs 900 euros", "The pizza oven arrives in May", "We painted the shed"):
        about = ["pizza oven", "garden", "", 7, "x" * 500]
        make_memory(text, cast.owner, cast.workspace, source_details={"about": about})
    assert [name for name, _number in suggest_topics(cast.workspace, cast.owner)] == ["pizza oven"]
    assert suggest_topics(cast.workspace, cast.viewer) == suggest_topics(cast.workspace, cast.owner)


def test_topics_that_look_alike_are_merged_or_told_apart(cast: Cast) -> None:
    short = make_node(cast.editor, cast.workspace, name="Maria", gathers_by_name=True)
    long = make_node(cast.editor, cast.workspace, name="Maria Lopez")
    apollo = make_node(cast.editor, cast.workspace, name="Apollo")
    topics.relate(short, apollo, "works on", now=timezone.now())
    memory = make_memory("Maria knows the venue", cast.owner, cast.workspace)
    topics.link_memory(short, memory, now=timezone.now())
    assert suggest_merges(cast.workspace, cast.editor) == [(long, short)]
    page = shown(cast.editor, url("nodes", cast))
    assert url("node_merge", cast, short) in page
    assert url("node_merge", cast, short) not in shown(cast.viewer, url("nodes", cast))

    differ = url("node_differ", cast, long)
    assert differ in page
    for person, code in ((cast.viewer, 403), (cast.stranger, 404), (cast.editor, 302)):
        assert signed_in(person).post(differ, {"other": short.public_id}).status_code == code
    assert suggest_merges(cast.workspace, cast.editor) == []
    assert not topics.relations_of(long, cast.editor).exists()

    merge = url("node_merge", cast, short)
    for wrong, code in ((short.public_id, 422), ("node_none", 404), ("", 404)):
        assert signed_in(cast.editor).post(merge, {"into": wrong}).status_code == code
    merged = signed_in(cast.editor).post(merge, {"into": long.public_id})
    assert merged["Location"] == url("node", cast, long)
    assert not MemoryNode.objects.filter(pk=short.pk).exists()
    assert list(topics.gathered(long, cast.viewer)) == [memory]
    assert MemoryNode.objects.get(pk=long.pk).gathers_by_name
    assert [each.relation for each in topics.relations_of(long, cast.editor)] == ["works on"]


def test_what_was_taken_out_of_a_topic_stays_out_until_somebody_links_it(cast: Cast) -> None:
    topic = make_node(cast.editor, cast.workspace, name="Maria", gathers_by_name=True)
    memory = make_memory("Maria knows the venue", cast.owner, cast.workspace)
    topics.unlink_memory(topic, memory)
    edit_memory(memory, by=cast.owner, now=timezone.now(), content="Maria knows the venue well")
    topics.update_node(topic, now=timezone.now(), gathers_by_name=True)
    assert not topics.gathered(topic, cast.owner).exists()
    longer = make_node(cast.editor, cast.workspace, name="Maria Lopez")
    merge_topics(topic, longer, now=timezone.now())
    topics.update_node(longer, now=timezone.now(), name="Maria", gathers_by_name=True)
    assert not topics.gathered(longer, cast.owner).exists()
    assert topics.link_memory(longer, memory, now=timezone.now())
    edit_memory(memory, by=cast.owner, now=timezone.now(), content="Maria knows the venue")
    assert list(topics.gathered(longer, cast.owner)) == [memory]


def test_a_topic_of_personal_memories_is_seen_by_who_sees_one_of_them(cast: Cast) -> None:
    own = default_workspace(cast.owner)
    make_memory("Zelda owes me ten euros", cast.owner, scope=Scope.USER)
    zelda = make_node(cast.owner, own, name="Zelda", gathers_by_name=True)
    empty = make_node(cast.owner, own, name="Zelda Fitz")
    topics.relate(zelda, empty, "is the sister of", now=timezone.now())
    own.memberships.create(user=cast.editor, role="editor")
    later = make_node(cast.owner, own, name="ten euros", gathers_by_name=True)
    assert [each.owner for each in (zelda, empty, later)] == [cast.owner] * 3
    listed = reverse("memories:nodes", args=[own.public_id])
    assert "Zelda" in shown(cast.owner, listed)
    for page in (listed, f"{listed}?q=zelda"):
        assert "Zelda" not in shown(cast.editor, page)
    api = Api(cast.editor, base=V1)
    at = f"memory-nodes/{zelda.public_id}"
    assert api.get("memory-nodes", workspace_id=own.public_id).json()["items"] == []
    for path in (at, f"{at}/memories", f"{at}/relations", f"{at}/neighbours"):
        assert api.get(path, workspace_id=own.public_id).status_code == 404
    theirs = api.post(f"memory-nodes?workspace_id={own.public_id}", {"name": "zelda"})
    assert (theirs.status_code, theirs.json()["relationCount"]) == (201, 0)
    again = api.post(f"memory-nodes?workspace_id={own.public_id}", {"name": "Zelda"})
    assert again.status_code == 409

    shared = make_memory("Zelda plans the party", cast.owner, own)
    assert list(topics.gathered(zelda, cast.editor)) == [shared]
    detail = api.get(at, workspace_id=own.public_id).json()
    assert (detail["memoryCount"], detail["relationCount"], detail["relations"]) == (1, 0, [])
    assert api.get(f"{at}/neighbours", workspace_id=own.public_id).json()["nodes"] == []
    delete_memory(shared, by=cast.owner, now=timezone.now())
    assert api.get(at, workspace_id=own.public_id).status_code == 404


def test_a_topic_of_a_shared_workspace_is_seen_though_empty(cast: Cast) -> None:
    make_memory("Zelda owes me ten euros", cast.editor, scope=Scope.USER)
    made = make_node(cast.editor, cast.workspace, name="Zelda", gathers_by_name=True)
    assert made.owner is None
    assert "Zelda" in shown(cast.viewer, url("nodes", cast))
