"""The JSON of memory nodes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memories.api.v1.serializers import OrganisationMemoryJson, PlaceQuery
from memories.models.node import KIND_LENGTH, NODE_DESCRIPTION_LENGTH, NODE_NAME_LENGTH, RELATION_LENGTH
from memories.nodes.nodes import DEEPEST, MOST_NEIGHBOURS
from workspaces.api.fields import Body, Moment, Text, from_to
from workspaces.api.pagination import PageQuery
from workspaces.api.schema import ID

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
    """For the schema: a node with the first of what hangs on it."""

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
    """What a client may change."""

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
    """From the node in the address to another."""

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
        error_messages=from_to(1, DEEPEST),
    )
    limit = serializers.IntegerField(
        min_value=1,
        max_value=MOST_NEIGHBOURS,
        default=50,
        help_text="How many nodes at most.",
        error_messages=from_to(1, MOST_NEIGHBOURS),
    )
