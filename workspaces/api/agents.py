"""The assistants of a workspace, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import get_workspace
from workspaces.agents import agents
from workspaces.api.serializers import PersonJson
from workspaces.models import Agent, Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.fields import (
    Body,
    Choice,
    Moment,
    Text,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery
from workspaces.rest.views import ApiView

TAG = "assistants"
AGENT: dict[str, Any] = {
    "id": "agent_5sJv2TzB8mYw1RsX9vLcHn8G",
    "workspace_id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "name": "Proofreader",
    "description": "Corrects texts before they go out.",
    "instructions": "Correct spelling and grammar. Keep the author's tone, and list what you changed.",
    "created_by": {"id": "usr_8pRw5TzB2mYw1KsX9vLcHn3Q", "username": "maria"},
    "created_at": "2026-03-07T10:30:00.000000Z",
    "updated_at": "2026-03-07T10:30:00.000000Z",
    "archived_at": None,
}


class AgentJson(serializers.ModelSerializer[Agent]):
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    instructions = serializers.CharField(help_text="What goes before the model in every chat with it.")
    created_by = PersonJson(allow_null=True)
    created_at = Moment()
    updated_at = Moment()
    archived_at = Moment(allow_null=True)

    class Meta:
        model = Agent
        fields = [
            "id",
            "workspace_id",
            "name",
            "description",
            "instructions",
            "created_by",
            "created_at",
            "updated_at",
            "archived_at",
        ]


class AgentChanges(Body):
    name = Text(max_length=agents.NAME_LENGTH, required=False)
    description = Text(max_length=agents.DESCRIPTION_LENGTH, allow_blank=True, required=False)
    instructions = Text(max_length=agents.INSTRUCTIONS_LENGTH, allow_blank=True, required=False)


class AgentBody(AgentChanges):
    name = Text(max_length=agents.NAME_LENGTH)


class AgentQuery(PageQuery):
    state = Choice(["in_use", "archived"], default="in_use", help_text="Only these.")


class AgentList(ApiView):
    @documented(
        "List the assistants of a workspace",
        tag=TAG,
        operation="agents_list",
        answers={200: page_of(AgentJson, "Agent")},
        query=AgentQuery,
        errors=[404],
        description="In the order they were made; the archived ones are a list of their own.",
        examples=[page_example(AGENT)],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        state = self.query(AgentQuery)["state"]
        found = workspace.agents.filter(archived_at__isnull=state == "in_use")
        return self.page(
            found.select_related("workspace", "created_by"),
            AgentJson,
            list_name=f"agents of {workspace.public_id}, {state}",
        )

    @documented(
        "Make an assistant",
        tag=TAG,
        operation="agents_create",
        answers={201: AgentJson},
        headers=ONCE,
        body=AgentBody,
        errors=[404, 409],
        writes=True,
        description="Editors only. 409 when another assistant of the workspace has the name, whatever its case, or "
        "when there are fifty.",
        examples=[
            request_example("A proofreader", {name: AGENT[name] for name in ("name", "instructions")}),
            answer_example("Made", AGENT, code=201),
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body, now = self.body(AgentBody), timezone.now()
        made = self.once(
            lambda: agents.create_agent(workspace, **body, by=self.person, now=now),
            keep=lambda agent: {"agent": agent.public_id},
            again=lambda note: agents.get_agent(self.person, note["agent"]),
        )
        return Response(AgentJson(made).data, status=status.HTTP_201_CREATED)


class AgentDetail(ApiView):
    @documented(
        "Look at an assistant",
        tag=TAG,
        operation="agents_get",
        answers={200: AgentJson},
        errors=[404],
        examples=[answer_example("An assistant", AGENT)],
    )
    def get(self, request: Request, agent_id: str) -> Response:
        return Response(AgentJson(agents.get_agent(self.person, agent_id)).data)

    @documented(
        "Change an assistant",
        tag=TAG,
        operation="agents_update",
        answers={200: AgentJson},
        body=AgentChanges,
        errors=[404, 409],
        writes=True,
        description="What is left out stays. Its chats follow new instructions from their next answer on.",
        examples=[
            request_example("New instructions", {"instructions": "Correct spelling only."}),
            answer_example("Changed", AGENT),
        ],
    )
    def patch(self, request: Request, agent_id: str) -> Response:
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        changed = agents.update_agent(agent, **self.body(AgentChanges), by=self.person, now=timezone.now())
        return Response(AgentJson(changed).data)

    @documented(
        "Archive an assistant",
        tag=TAG,
        operation="agents_archive",
        answers={204: None},
        errors=[404],
        writes=True,
        description="No new chat begins with it. Its chats go on, its memories stay and are recalled in those "
        "alone; `restore` brings it back.",
    )
    def delete(self, request: Request, agent_id: str) -> Response:
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        agents.archive_agent(agent, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AgentRestore(ApiView):
    @documented(
        "Restore an archived assistant",
        tag=TAG,
        operation="agents_restore",
        answers={200: AgentJson},
        errors=[404, 409],
        writes=True,
        description="409 when another has taken its name. Restoring one that is in use changes nothing.",
        examples=[answer_example("Restored", AGENT)],
    )
    def post(self, request: Request, agent_id: str) -> Response:
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        return Response(AgentJson(agents.restore_agent(agent, by=self.person, now=timezone.now())).data)
