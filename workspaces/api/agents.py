"""The assistants of a workspace, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import get_workspace
from workspaces.actions import agents
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.pagination import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import PersonJson
from workspaces.models import Role

documented = documented_under("assistants")


class AgentJson(serializers.Serializer[Any]):
    example = {"id": f"agent_{ID}", "name": "Proofreader", "instructions": "Correct spelling and grammar."}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    name = serializers.CharField(max_length=agents.NAME_LENGTH)
    description = serializers.CharField(max_length=agents.DESCRIPTION_LENGTH)
    instructions = serializers.CharField(help_text="What goes before the model in every chat with it.")
    created_by = PersonJson(allow_null=True)
    imported = serializers.BooleanField(
        read_only=True, help_text="Whether somebody else imported it under that person's name."
    )
    created_at = Moment()
    updated_at = Moment()
    archived_at = Moment(allow_null=True)


class AgentChanges(Body):
    example = {"instructions": "Correct spelling only."}
    name = Text(max_length=agents.NAME_LENGTH, required=False)
    description = Text(max_length=agents.DESCRIPTION_LENGTH, allow_blank=True, required=False)
    instructions = Text(max_length=agents.INSTRUCTIONS_LENGTH, allow_blank=True, required=False)


class AgentBody(AgentChanges):
    example = {"name": "Proofreader", "instructions": "Correct spelling and grammar."}
    name = Text(max_length=agents.NAME_LENGTH)


class AgentQuery(PageQuery):
    state = Choice(["in_use", "archived"], default="in_use", help_text="Only these.")


class AgentList(ApiView):
    @documented("agents_list", page_of(AgentJson), query=AgentQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the assistants of a workspace.

        Oldest first; `state` chooses those in use or the archived ones.
        """
        workspace = get_workspace(self.person, workspace_id)
        state = self.query(AgentQuery)["state"]
        found = workspace.agents.filter(archived_at__isnull=state == "in_use")
        return self.page(
            found.select_related("workspace", "created_by"),
            AgentJson,
            list_name=f"agents of {workspace.public_id}, {state}",
        )

    @documented("agents_create", {201: AgentJson}, body=AgentBody, headers=ONCE)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Make an assistant.

        Editors and owners only. 409 if another assistant in the workspace has this name, ignoring case, or if there are
        already fifty.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body, now = self.body(AgentBody), timezone.now()
        made = self.make_once(
            lambda: agents.create_agent(workspace, **body, by=self.person, now=now), agents.get_agent
        )
        return Response(AgentJson(made).data, status=status.HTTP_201_CREATED)


class AgentDetail(ApiView):
    @documented("agents_get", AgentJson)
    def get(self, request: Request, agent_id: str) -> Response:
        """Look at an assistant."""
        return Response(AgentJson(agents.get_agent(self.person, agent_id)).data)

    @documented("agents_update", AgentJson, body=AgentChanges, errors=[409])
    def patch(self, request: Request, agent_id: str) -> Response:
        """Change an assistant.

        Fields you leave out stay as they are. Its chats follow new instructions from their next answer on.
        """
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        changed = agents.update_agent(agent, **self.body(AgentChanges), by=self.person, now=timezone.now())
        return Response(AgentJson(changed).data)

    @documented("agents_archive")
    def delete(self, request: Request, agent_id: str) -> Response:
        """Archive an assistant.

        It can no longer be chosen for new chats. Existing chats continue, and its memories are still recalled in them.
        `restore` undoes this.
        """
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        agents.archive_agent(agent, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AgentRestore(ApiView):
    @documented("agents_restore", AgentJson, errors=[409])
    def post(self, request: Request, agent_id: str) -> Response:
        """Restore an archived assistant.

        409 if another assistant has taken its name. Restoring one that is in use changes nothing.
        """
        agent = agents.get_agent(self.person, agent_id, need=Role.EDITOR)
        return Response(AgentJson(agents.restore_agent(agent, by=self.person, now=timezone.now())).data)
