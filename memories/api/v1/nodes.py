"""Memory nodes: the graph of a workspace, for programs with a key."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.examples import SECRET
from memories.api.v1 import examples, nodes_examples
from memories.api.v1.nodes_serializers import (
    FIRST_MEMORIES,
    FIRST_RELATIONS,
    MemoryLinkBody,
    NeighbourJson,
    NeighboursJson,
    NeighboursQuery,
    NodeBody,
    NodeChanges,
    NodeDetailJson,
    NodeJson,
    NodePartsQuery,
    NodeQuery,
    RelationBody,
    RelationJson,
)
from memories.api.v1.serializers import OrganisationMemoryJson, PlaceQuery
from memories.api.v1.views import DELETING, OrganisationView
from memories.models import Memory, MemoryNode
from memories.nodes import nodes
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.idempotency import ONCE

TAG = "memory nodes"


class NodeView(OrganisationView):
    def node(self, node_id: str, need: Role = Role.VIEWER) -> MemoryNode:
        return nodes.get_node(self.person, node_id, workspace=self.workspace(need), need=need)

    def gathered(self, node: MemoryNode) -> QuerySet[Memory]:
        """Its memories, as far as the asker may see them, newest first."""
        found = nodes.gathered(node, self.person).listed().defer("search", "source_excerpt")
        return found.prefetch_related("sources")

    def answer(self, node: MemoryNode, code: int = status.HTTP_200_OK) -> Response:
        return Response(NodeJson(nodes.counted(node, self.person)).data, status=code)


class NodeList(NodeView):
    @documented(
        "List memory nodes",
        tag=TAG,
        operation="v1_nodes_list",
        answers={200: page_of(NodeJson, "MemoryNode")},
        query=NodeQuery,
        errors=[404, 429],
        description="The nodes of the workspace, by name.",
        examples=[page_example(nodes_examples.OTHER, nodes_examples.NODE)],
    )
    def get(self, request: Request) -> Response:
        workspace = self.workspace()
        query = self.query(NodeQuery)
        rows = MemoryNode.objects.filter(workspace=workspace).select_related("workspace")
        if "name" in query:
            rows = rows.filter(folded=nodes.fold(" ".join(query["name"].split())))
        if "kind" in query:
            rows = rows.filter(kind__iexact=query["kind"])
        return self.page(
            nodes.with_counts(rows, workspace, self.person),
            NodeJson,
            keys=["folded", "id"],
            list_name=f"nodes of {workspace.public_id}",
        )

    @documented(
        "Make a memory node",
        tag=TAG,
        operation="v1_nodes_create",
        answers={201: NodeJson},
        body=NodeBody,
        query=PlaceQuery,
        errors=[404, 409, 429],
        writes=True,
        headers=ONCE,
        description="409 when the workspace has one of this name; `?name=` of the list finds it.",
        examples=[
            request_example("A project", {"name": "Apollo", "kind": "project"}),
            answer_example("Made", nodes_examples.NODE, code=201),
            SECRET,
        ],
    )
    def post(self, request: Request) -> Response:
        workspace = self.workspace(Role.EDITOR)
        body, now = self.body(NodeBody), timezone.now()
        node = self.once(
            lambda: nodes.create_node(workspace, **body, by=self.person, now=now),
            keep=lambda node: {"node": node.public_id},
            again=lambda note: self.node(note["node"]),
        )
        return self.answer(node, status.HTTP_201_CREATED)


class NodeDetail(NodeView):
    @documented(
        "Look at a memory node",
        tag=TAG,
        operation="v1_nodes_get",
        answers={200: NodeDetailJson},
        query=PlaceQuery,
        errors=[404, 429],
        description="With its newest memories, as far as you may see them, and its first relations.",
        examples=[answer_example("A node", nodes_examples.DETAIL)],
    )
    def get(self, request: Request, node_id: str) -> Response:
        node = nodes.counted(self.node(node_id), self.person)
        memories = self.gathered(node)[:FIRST_MEMORIES]
        relations = nodes.relations_of(node)[:FIRST_RELATIONS]
        parts = {
            "memories": OrganisationMemoryJson(memories, many=True).data,
            "relations": RelationJson(relations, many=True).data,
        }
        return Response({**NodeJson(node).data, **parts})

    @documented(
        "Change a memory node",
        tag=TAG,
        operation="v1_nodes_update",
        answers={200: NodeJson},
        body=NodeChanges,
        query=PlaceQuery,
        errors=[404, 409, 429],
        writes=True,
        description="What is left out stays. 409 when the name is taken.",
        examples=[
            request_example("A description", {"description": "The launch in spring"}),
            answer_example("Changed", nodes_examples.NODE),
            SECRET,
        ],
    )
    def patch(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id, Role.EDITOR)
        changes: dict[str, Any] = self.body(NodeChanges)
        return self.answer(nodes.update_node(node, now=timezone.now(), **changes))

    @documented(
        "Delete a memory node",
        tag=TAG,
        operation="v1_nodes_delete",
        answers={204: None},
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        session_only=True,
        description=f"For good, with its links and relations; what it gathered stays. {DELETING}",
    )
    def delete(self, request: Request, node_id: str) -> Response:
        self.require_fresh_password()
        nodes.delete_node(self.node(node_id, Role.EDITOR))
        return Response(status=status.HTTP_204_NO_CONTENT)


class NodeMemories(NodeView):
    @documented(
        "List the memories of a node",
        tag=TAG,
        operation="v1_nodes_memories",
        answers={200: page_of(OrganisationMemoryJson, "NodeMemory")},
        query=NodePartsQuery,
        errors=[404, 429],
        description="Those that you may see, newest first. Personal ones are their owner's alone, in a node too.",
        examples=[answer_example("A page", examples.PAGE)],
    )
    def get(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id)
        return self.page(
            self.gathered(node),
            OrganisationMemoryJson,
            descending=True,
            list_name=f"memories of {node.public_id}",
        )

    @documented(
        "Link a memory to a node",
        tag=TAG,
        operation="v1_nodes_link_memory",
        answers={201: NodeJson, 200: NodeJson},
        body=MemoryLinkBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        description="200 when it was linked already. You may link your own global memories too; nobody else sees them.",
        examples=[
            request_example("A memory", {"memoryId": examples.MEMORY["id"]}),
            answer_example("Linked", nodes_examples.NODE, code=201),
            answer_example("It was already", nodes_examples.NODE),
        ],
    )
    def post(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id, Role.EDITOR)
        memory = nodes.memory_in_sight(node, self.person, self.body(MemoryLinkBody)["memoryId"])
        is_new = nodes.link_memory(node, memory, now=timezone.now())
        return self.answer(node, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class NodeMemoryUnlink(NodeView):
    @documented(
        "Unlink a memory from a node",
        tag=TAG,
        operation="v1_nodes_unlink_memory",
        answers={200: NodeJson},
        body=MemoryLinkBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        description="Nothing is deleted but the link, so a key may do it. Also 200 when there was no link.",
        examples=[
            request_example("A memory", {"memoryId": examples.MEMORY["id"]}),
            answer_example("Unlinked", nodes_examples.NODE),
        ],
    )
    def post(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id, Role.EDITOR)
        memory = nodes.memory_in_sight(node, self.person, self.body(MemoryLinkBody)["memoryId"])
        nodes.unlink_memory(node, memory)
        return self.answer(node)


class NodeRelations(NodeView):
    @documented(
        "List the relations of a node",
        tag=TAG,
        operation="v1_nodes_relations",
        answers={200: page_of(RelationJson, "NodeRelation")},
        query=NodePartsQuery,
        errors=[404, 429],
        description="From it and to it, oldest first.",
        examples=[page_example(nodes_examples.RELATION)],
    )
    def get(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id)
        return self.page(
            nodes.relations_of(node), RelationJson, keys=["id"], list_name=f"relations of {node.public_id}"
        )

    @documented(
        "Relate a node to another",
        tag=TAG,
        operation="v1_nodes_relate",
        answers={201: RelationJson, 200: RelationJson},
        body=RelationBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        description="From this node to the other: the direction counts, and two nodes may have several relations. "
        "200 when they had this one already.",
        examples=[
            request_example("Works on", {"nodeId": nodes_examples.OTHER["id"], "relation": "works on"}),
            answer_example("Related", nodes_examples.RELATION, code=201),
            answer_example("They were already", nodes_examples.RELATION),
            SECRET,
        ],
    )
    def post(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id, Role.EDITOR)
        body = self.body(RelationBody)
        other = nodes.get_node(self.person, body["nodeId"], workspace=node.workspace)
        made, is_new = nodes.relate(node, other, body["relation"], now=timezone.now())
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(RelationJson(made).data, status=code)


class NodeRelationUnlink(NodeView):
    @documented(
        "Take a relation away",
        tag=TAG,
        operation="v1_nodes_unrelate",
        answers={200: NodeJson},
        body=RelationBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        description="The one from this node to the other of exactly this type. Also 200 when there was none.",
        examples=[
            request_example("Works on", {"nodeId": nodes_examples.OTHER["id"], "relation": "works on"}),
            answer_example("Taken away", nodes_examples.NODE),
        ],
    )
    def post(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id, Role.EDITOR)
        body = self.body(RelationBody)
        other = nodes.get_node(self.person, body["nodeId"], workspace=node.workspace)
        nodes.unrelate(node, other, body["relation"])
        return self.answer(node)


class NodeNeighbours(NodeView):
    @documented(
        "Look around a node",
        tag=TAG,
        operation="v1_nodes_neighbours",
        answers={200: NeighboursJson},
        query=NeighboursQuery,
        errors=[404, 429],
        description=f"The nodes that relations lead to, whichever way they point, in up to {nodes.DEEPEST} steps, "
        "nearest first.",
        examples=[answer_example("One step", nodes_examples.NEIGHBOURS)],
    )
    def get(self, request: Request, node_id: str) -> Response:
        node = self.node(node_id)
        query = self.query(NeighboursQuery)
        found = nodes.neighbours(node, self.person, depth=query["depth"], limit=query["limit"])
        answer = {
            "nodes": NeighbourJson(found.nodes, many=True).data,
            "relations": RelationJson(found.relations, many=True).data,
            "truncated": found.truncated,
        }
        return Response(answer)
