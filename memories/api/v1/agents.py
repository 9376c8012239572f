"""The assistants of a workspace, to read: what a program needs to save and recall in their scope."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.v1.views import OrganisationView
from workspaces.actions import agents
from workspaces.api.fields import Moment
from workspaces.api.schema import ID, documented_under, page_of

documented = documented_under("organisation memory")


class OrganisationAgentJson(serializers.Serializer[Any]):
    example = {"id": f"agent_{ID}", "name": "Proofreader", "instructions": "Correct spelling and grammar."}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=agents.NAME_LENGTH)
    description = serializers.CharField(max_length=agents.DESCRIPTION_LENGTH)
    instructions = serializers.CharField(max_length=agents.INSTRUCTIONS_LENGTH)
    workspaceId = serializers.CharField(source="workspace.public_id")
    archivedAt = Moment(source="archived_at", allow_null=True)
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class AgentList(OrganisationView):
    @documented("v1_agents_list", page_of(OrganisationAgentJson))
    def get(self, request: Request) -> Response:
        """List the assistants.

        Assistants of the workspace that are in use, oldest first.
        """
        workspace = self.workspace()
        return self.page(
            workspace.agents.in_use().select_related("workspace"),
            OrganisationAgentJson,
            list_name=f"organisation agents of {workspace.public_id}",
        )


class AgentDetail(OrganisationView):
    @documented("v1_agents_get", OrganisationAgentJson)
    def get(self, request: Request, agent_id: str) -> Response:
        """Look at an assistant.

        Archived assistants are found too.
        """
        agent = agents.get_agent(self.person, agent_id, workspace=self.workspace())
        return Response(OrganisationAgentJson(agent).data)
