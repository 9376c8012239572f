"""REST endpoints (/api/v1) for memory nodes: the topics of a workspace and their relations."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories import topics
from memories.api.v1.serializers import OrganisationMemoryJson, PlaceQuery
from memories.api.v1.views import OrganisationView
from memories.models import Memory, MemoryNode
from memories.models.topics import KIND_LENGTH, NODE_DESCRIPTION_LENGTH, NODE_NAME_LENGTH, RELATION_LENGTH
from memories.topics import DEEPEST, MOST_NEIGHBOURS
from workspaces.api.fields import Body, Moment, Text, range_errors
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Role

ID_LENGTH = 32
FIRST_MEMORIES, FIRST_RELATIONS = 20, 50


class NodeJson(serializers.Serializer[Any]):
    example = {"id": f"node_{ID}", "name": "Maria", "kind": "person"}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=NODE_NAME_LENGTH)
    kind = serializers.CharField(max_length=KIND_LENGTH, help_text="For example, person or project.")
    description = serializers.CharField(max_length=NODE_DESCRIPTION_LENGTH)
    workspaceId = serializers.CharField(source="workspace.public_id")
    memoryCount = serializers.IntegerField(source="memory_count", help_text="Those that you may see.")
    relationCount = serializers.IntegerField(source="relation_count", help_text="From it and to it.")
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class NodeNameJson(serializers.Serializer[Any]):
    example = {"id": f"node_{ID}", "name": "Maria"}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=NODE_NAME_LENGTH)


class RelationJson(serializers.Serializer[Any]):
    example = {"relation": "works on", "target": {"id": "node_9dRw1TzB7mYw2RsX4vLcHn8M", "name": "Apollo"}}
    source = NodeNameJson()  # type: ignore[assignment]  # the name is the API's
    relation = serializers.CharField(max_length=RELATION_LENGTH)
    target = NodeNameJson()
    createdAt = Moment(source="created_at")


class NodeDetailJson(NodeJson):
    """A node with its first memories and relations."""

    memories = OrganisationMemoryJson(
        many=True, help_text=f"The newest {FIRST_MEMORIES} that you may see; `…/memories` has all."
    )
    relations = RelationJson(
        many=True, help_text=f"The first {FIRST_RELATIONS}, from it and to it; `…/relations` has all."
    )


class NeighbourJson(NodeJson):
    depth = serializers.IntegerField(help_text="How many relations away, the shortest way.")


class NeighboursJson(serializers.Serializer[Any]):
    nodes = NeighbourJson(many=True, help_text="Nearest first.")
    relations = RelationJson(many=True, help_text="Among these and the node that was asked about.")
    truncated = serializers.BooleanField(help_text="True: there are more than were given.")


class NodeChanges(Body):
    """Fields of a node that a client may write."""

    example = {"description": "The launch in spring"}
    name = Text(
        max_length=NODE_NAME_LENGTH,
        required=False,
        help_text="A workspace has one node of a name, whatever its case.",
    )
    kind = Text(
        max_length=KIND_LENGTH, allow_blank=True, required=False, help_text="For example, person or project."
    )
    description = Text(max_length=NODE_DESCRIPTION_LENGTH, allow_blank=True, required=False)


class NodeBody(NodeChanges):
    example = {"name": "Apollo", "kind": "project"}
    name = Text(max_length=NODE_NAME_LENGTH, help_text="One of a name, whatever its case, is in a workspace.")


class MemoryLinkBody(Body):
    memoryId = Text(max_length=ID_LENGTH, help_text="Of the workspace, or your own global one.")


class RelationBody(Body):
    """A relation from the node in the URL to another node."""

    example = {"relation": "works on"}
    nodeId = Text(max_length=ID_LENGTH, help_text="The other node, of the same workspace.")
    relation = Text(max_length=RELATION_LENGTH, help_text="For example, `works on`.")


class NodeQuery(PageQuery, PlaceQuery):
    name = Text(
        required=False, max_length=NODE_NAME_LENGTH, help_text="Only the one of this name, whatever its case."
    )
    kind = Text(required=False, max_length=KIND_LENGTH, help_text="Only of this kind, whatever its case.")


class NeighboursQuery(PlaceQuery):
    depth = serializers.IntegerField(
        min_value=1,
        max_value=DEEPEST,
        default=1,
        help_text="How many relations away at most.",
        error_messages=range_errors(1, DEEPEST),
    )
    limit = serializers.IntegerField(
        min_value=1,
        max_value=MOST_NEIGHBOURS,
        default=50,
        help_text="How many nodes at most.",
        error_messages=range_errors(1, MOST_NEIGHBOURS),
    )


documented = documented_under("memory nodes")


class NodeView(OrganisationView):
    def node(self, node_id: str, need: Role = Role.VIEWER) -> MemoryNode:
        return topics.get_node(self.person, node_id, workspace=self.workspace(need), need=need)

    def gathered(self, node: MemoryNode) -> QuerySet[Memory]:
        """Return the node's memories that the client may see, newest first."""
        memories = topics.gathered(node, self.person).listed().defer("search", "source_excerpt")
        return memories.prefetch_related("sources")

    def answer(self, node: MemoryNode, code: int = status.HTTP_200_OK) -> Response:
        return Response(NodeJson(topics.counted(node, self.person)).data, status=code)


class NodeList(NodeView):
    @documented("v1_nodes_list", page_of(NodeJson), query=NodeQuery)
    def get(self, request: Request) -> Response:
        """List memory nodes.

        The nodes of the workspace, by name.
        """
        workspace = self.workspace()
        query = self.query(NodeQuery)
        rows = topics.nodes_in(workspace, self.person).select_related("workspace")
        if "name" in query:
            rows = rows.filter(folded=topics.fold(" ".join(query["name"].split())))
        if "kind" in query:
            rows = rows.filter(kind__iexact=query["kind"])
        return self.page(
            topics.with_counts(rows, workspace, self.person),
            NodeJson,
            keys=["folded", "id"],
            list_name=f"nodes of {workspace.public_id}",
        )

    @documented("v1_nodes_create", {201: NodeJson}, body=NodeBody, headers=ONCE)
    def post(self, request: Request) -> Response:
        """Create a memory node.

        409 if the workspace already has a node of this name; find it with `?name=` in the list.
        """
        workspace = self.workspace(Role.EDITOR)
        body, now = self.body(NodeBody), timezone.now()
        node = self.make_once(
            lambda: topics.create_node(workspace, **body, by=self.person, now=now),
            lambda person, node_id: self.node(node_id),
        )
        return self.answer(node, status.HTTP_201_CREATED)


class NodeDetail(NodeView):
    @documented("v1_nodes_get", NodeDetailJson)
    def get(self, request: Request, node_id: str) -> Response:
        """Get a memory node.

        With its newest memories that you may see and its first relations.
        """
        node = topics.counted(self.node(node_id), self.person)
        memories = self.gathered(node)[:FIRST_MEMORIES]
        relations = topics.relations_of(node, self.person)[:FIRST_RELATIONS]
        parts = {
            "memories": OrganisationMemoryJson(memories, many=True).data,
            "relations": RelationJson(relations, many=True).data,
        }
        return Response({**NodeJson(node).data, **parts})

    @documented("v1_nodes_update", NodeJson, body=NodeChanges, errors=[409])
    def patch(self, request: Request, node_id: str) -> Response:
        """Change a memory node.

        Fields you leave out stay as they are. 409 if the name is taken.
        """
        node = self.node(node_id, Role.EDITOR)
        changes: dict[str, Any] = self.body(NodeChanges)
        return self.answer(topics.update_node(node, now=timezone.now(), **changes))

    @documented("v1_nodes_delete", fresh=True)
    def delete(self, request: Request, node_id: str) -> Response:
        """Delete a memory node permanently.

        Its links and relations are deleted too; its memories stay.
        """
        self.require_fresh_password()
        self.node(node_id, Role.EDITOR).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class NodeMemories(NodeView):
    @documented("v1_nodes_memories", page_of(OrganisationMemoryJson))
    def get(self, request: Request, node_id: str) -> Response:
        """List the memories of a node.

        Memories you may see, newest first. A personal memory is visible only to its owner, even if it is linked to a
        node.
        """
        node = self.node(node_id)
        return self.page(
            self.gathered(node),
            OrganisationMemoryJson,
            descending=True,
            list_name=f"memories of {node.public_id}",
        )

    @documented("v1_nodes_link_memory", {201: NodeJson, 200: NodeJson}, body=MemoryLinkBody)
    def post(self, request: Request, node_id: str) -> Response:
        """Link a memory to a node.

        200 if it was already linked. You can also link your own global memories, which nobody else sees.
        """
        node = self.node(node_id, Role.EDITOR)
        memory = topics.get_linkable_memory(node, self.person, self.body(MemoryLinkBody)["memoryId"])
        is_new = topics.link_memory(node, memory, now=timezone.now())
        return self.answer(node, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class NodeMemoryUnlink(NodeView):
    @documented("v1_nodes_unlink_memory", NodeJson, body=MemoryLinkBody)
    def post(self, request: Request, node_id: str) -> Response:
        """Unlink a memory from a node.

        Only the link is deleted, so an API key may do this. Also 200 if there was no link.
        """
        node = self.node(node_id, Role.EDITOR)
        memory = topics.get_linkable_memory(node, self.person, self.body(MemoryLinkBody)["memoryId"])
        topics.unlink_memory(node, memory)
        return self.answer(node)


class NodeRelations(NodeView):
    @documented("v1_nodes_relations", page_of(RelationJson))
    def get(self, request: Request, node_id: str) -> Response:
        """List the relations of a node.

        Relations from it and to it, oldest first.
        """
        node = self.node(node_id)
        return self.page(
            topics.relations_of(node, self.person),
            RelationJson,
            keys=["id"],
            list_name=f"relations of {node.public_id}",
        )

    @documented("v1_nodes_relate", {201: RelationJson, 200: RelationJson}, body=RelationBody)
    def post(self, request: Request, node_id: str) -> Response:
        """Relate a node to another.

        The relation goes from this node to the other. Two nodes can have several relations. 200 if they already have
        this one.
        """
        node = self.node(node_id, Role.EDITOR)
        body = self.body(RelationBody)
        other = topics.get_node(self.person, body["nodeId"], workspace=node.workspace)
        relation, is_new = topics.relate(node, other, body["relation"], now=timezone.now())
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(RelationJson(relation).data, status=code)


class NodeRelationUnlink(NodeView):
    @documented("v1_nodes_unrelate", NodeJson, body=RelationBody)
    def post(self, request: Request, node_id: str) -> Response:
        """Remove a relation of a node.

        Only the relation of exactly this type from this node to the other is removed. Also 200 if there was none.
        """
        node = self.node(node_id, Role.EDITOR)
        body = self.body(RelationBody)
        other = topics.get_node(self.person, body["nodeId"], workspace=node.workspace)
        topics.unrelate(node, other, body["relation"])
        return self.answer(node)


class NodeNeighbours(NodeView):
    @documented("v1_nodes_neighbours", NeighboursJson, query=NeighboursQuery)
    def get(self, request: Request, node_id: str) -> Response:
        """List the neighbours of a node.

        Nodes up to `depth` relations away, in either direction, nearest first.
        """
        node = self.node(node_id)
        query = self.query(NeighboursQuery)
        neighbourhood = topics.neighbours(node, self.person, depth=query["depth"], limit=query["limit"])
        return Response(NeighboursJson(neighbourhood).data)
