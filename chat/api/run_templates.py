"""Templates of runs over REST: listed, saved from a run, started from, deleted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.agents.runs import get_run, start_run
from chat.agents.stored_run import limits_of
from chat.agents.templates import (
    LONGEST_NAME,
    delete_template,
    get_template,
    save_template,
    templates_of,
    wanted_of,
)
from chat.api.runs import Json, RunJson, accepted, documented, json_object
from chat.models.runs import RunMode, RunTemplate
from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Flag, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, page_of


class RunTemplateJson(serializers.Serializer[Any]):
    example = {"id": f"rtp_{ID}", "name": "Offers compared", "objective": "Compare our three hosting offers"}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    name = serializers.CharField()
    objective = serializers.CharField()
    mode = serializers.ChoiceField(choices=RunMode.values)
    plan = serializers.JSONField(help_text="null: the model plans.")
    tools = serializers.ListField(child=serializers.CharField())
    budget = serializers.SerializerMethodField()
    created_at = Moment()

    def get_budget(self, template: RunTemplate) -> dict[str, int]:
        return asdict(limits_of(template))


class SaveTemplateBody(Body):
    example = {"name": "Offers compared"}
    name = Text(help_text=f"At most {LONGEST_NAME} characters; no other template here has it.")


class StartTemplateBody(Body):
    objective = Text(required=False, help_text="In place of the template's; at most 8,000 characters.")
    inputs = Json(required=False, help_text="An object; its values are the run's `input:` entries.")
    review_plan = Flag(default=False, help_text="The plan waits for you before anything of it is done.")


class RunTemplateList(ApiView):
    @documented("run_templates_list", page_of(RunTemplateJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the templates of runs in a workspace."""
        workspace = get_workspace(self.person, workspace_id)
        return self.page(
            templates_of(workspace, self.person).select_related("workspace"),
            RunTemplateJson,
            list_name=f"run templates of {workspace_id}",
        )


class RunTemplateSave(ApiView):
    @documented(
        "run_templates_create", {201: RunTemplateJson}, body=SaveTemplateBody, headers=ONCE, errors=[409]
    )
    def post(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Save a run as a template.

        With its plan, for everyone in the workspace to start from. 409 for a private run. Editors and owners only.
        """
        workspace = get_workspace(self.person, workspace_id)
        run, name = get_run(self.person, workspace, run_id), self.body(SaveTemplateBody)["name"]
        template = self.make_once(
            lambda: save_template(run, name, by=self.person, now=timezone.now()),
            lambda person, public_id: get_template(workspace, public_id, by=person),
        )
        return Response(RunTemplateJson(template).data, status=status.HTTP_201_CREATED)


class RunTemplateDetail(ApiView):
    @documented("run_templates_delete")
    def delete(self, request: Request, workspace_id: str, template_id: str) -> Response:
        """Delete a template.

        Who saved it or an owner of the workspace may do this. Runs that were started from it stay.
        """
        delete_template(get_workspace(self.person, workspace_id), template_id, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RunTemplateStart(ApiView):
    @documented(
        "run_templates_start", {202: RunJson}, body=StartTemplateBody, headers=ONCE, errors=[409, 429]
    )
    def post(self, request: Request, workspace_id: str, template_id: str) -> Response:
        """Start a run from a template.

        With its mode, plan, tools and budget; as any other run in everything else.
        """
        workspace, body = get_workspace(self.person, workspace_id), self.body(StartTemplateBody)
        wanted = wanted_of(
            get_template(workspace, template_id, by=self.person),
            objective=body.get("objective", ""),
            inputs=json_object("inputs", body.get("inputs")),
            reviews_plan=body["review_plan"],
        )
        run = self.make_once(
            lambda: start_run(workspace, wanted, by=self.person, now=timezone.now()),
            lambda person, public_id: get_run(person, workspace, public_id),
        )
        return accepted(self, workspace, run)
