"""The assistants of a workspace, to read: what a program needs to save and recall in their scope."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.v1.serializers import PlaceQuery
from memories.api.v1.views import OrganisationView
from workspaces.agents.agents import get_agent
from workspaces.models import Agent
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
)
from workspaces.rest.fields import Moment
from workspaces.rest.paging import PageQuery

TAG = "organisation memory"
AGENT: dict[str, Any] = {
    "id": "agent_5sJv2TzB8mYw1RsX9vLcHn8G",
    "name": "Proofreader",
    "description": "Corrects texts before they go out.",
    "instructions": "Correct spelling and grammar. Keep the author's tone, and list what you changed.",
    "workspaceId": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "archivedAt": None,
    "createdAt": "2026-03-07T10:30:00.000000Z",
    "updatedAt": "2026-03-07T10:30:00.000000Z",
}


class OrganisationAgentJson(serializers.ModelSerializer[Agent]):
    id = serializers.CharField(source="public_id")
    workspaceId = serializers.CharField(source="workspace.public_id")
    archivedAt = Moment(source="archived_at", allow_null=True)
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")

    class Meta:
        model = Agent
        fields = list(AGENT)


class OrganisationAgentQuery(PageQuery, PlaceQuery):
    pass


class AgentList(OrganisationView):
    @documented(
        "List the assistants",
        tag=TAG,
        operation="v1_agents_list",
        answers={200: page_of(OrganisationAgentJson, "OrganisationAgent")},
        query=OrganisationAgentQuery,
        errors=[404, 429],
        description="Those of the workspace that are in use, in the order they were made.",
        examples=[page_example(AGENT)],
    )
    def get(self, request: Request) -> Response:
        workspace = self.workspace()
        return self.page(
            workspace.agents.in_use().select_related("workspace"),
            OrganisationAgentJson,
            list_name=f"organisation agents of {workspace.public_id}",
        )


class AgentDetail(OrganisationView):
    @documented(
        "Look at an assistant",
        tag=TAG,
        operation="v1_agents_get",
        answers={200: OrganisationAgentJson},
        query=PlaceQuery,
        errors=[404, 429],
        description="An archived one, too.",
        examples=[answer_example("An assistant", AGENT)],
    )
    def get(self, request: Request, agent_id: str) -> Response:
        agent = get_agent(self.person, agent_id, workspace=self.workspace())
        return Response(OrganisationAgentJson(agent).data)
