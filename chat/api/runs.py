"""REST endpoints of runs and run templates."""

import json
from dataclasses import asdict
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models.runs import Run, RunEntry, RunMode, RunStatus, RunTemplate
from chat.runs import services
from chat.runs.budget import limits_of
from chat.runs.events import follow_run
from chat.runs.run_display import result_of, tasks_of
from chat.runs.run_entries import MemoryKind
from chat.turns.services import resume_from_chat
from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Flag, Moment, StoredSentence, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Workspace
from workspaces.views.event_streams import EventStream, StreamSlot

documented = documented_under("runs")
KINDS = [str(kind) for kind in MemoryKind]


class RunEventJson(serializers.Serializer[Any]):
    """A server-sent event of a run."""

    event = serializers.ChoiceField(choices=["reply", "tool", "memory", "step", "run", "done", "error"])
    data = serializers.CharField(help_text="JSON on one line.")  # type: ignore[assignment]  # SSE's word


EVENTS = OpenApiResponse(
    response=RunEventJson,
    description="`reply`, `tool`, `memory`, `step` and `run`, each with ids and numbers and no text of anybody's; "
    "`done` when the run is over. `Last-Event-ID` goes on behind that event.",
)


class RunLineJson(serializers.Serializer[Any]):
    example = {"id": f"run_{ID}", "objective": "Compare our three hosting offers", "error": ""}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    started_by = serializers.CharField(source="user.public_id")
    answer_id = serializers.CharField(
        source="answer.public_id",
        allow_null=True,
        default=None,
        help_text="The answer in a chat that it is for.",
    )
    objective = serializers.CharField()
    mode = serializers.ChoiceField(choices=RunMode.values)
    status = serializers.ChoiceField(choices=RunStatus.values)
    error = StoredSentence(help_text="Why it failed or was stopped, in a sentence.")
    used = serializers.SerializerMethodField(help_text="Replies of the model and tokens so far.")
    cost = serializers.DecimalField(
        max_digits=18,
        decimal_places=8,
        allow_null=True,
        help_text="Of what it used so far, in the installation's currency; null where its model has no price.",
    )
    created_at = Moment()
    finished_at = Moment(allow_null=True)

    def get_used(self, run: Run) -> dict[str, int]:
        return {"rounds": run.rounds, "tokens_in": run.tokens_in, "tokens_out": run.tokens_out}


class RunJson(RunLineJson):
    tasks = serializers.SerializerMethodField(
        help_text="In the plan's order, with the steps that have begun."
    )
    plan = serializers.JSONField(help_text="null until there is one.")
    result = serializers.SerializerMethodField(help_text="Of the last task; null until that is done.")
    budget = serializers.SerializerMethodField()
    expected_tokens = serializers.IntegerField(
        help_text="As guessed before it began, from runs done here; 0: not yet."
    )
    expected_cost = serializers.DecimalField(
        max_digits=18, decimal_places=8, allow_null=True, help_text="Of these tokens; null without a price."
    )
    tools = serializers.ListField(child=serializers.CharField())
    memory_ids = serializers.ListField(
        child=serializers.CharField(), help_text="What it saved to long-term memory."
    )

    def get_tasks(self, run: Run) -> list[dict[str, Any]]:
        return tasks_of(run)

    def get_result(self, run: Run) -> Any:
        return result_of(run)

    def get_budget(self, run: Run) -> dict[str, int]:
        return asdict(limits_of(run))


class RunEntryJson(serializers.Serializer[Any]):
    example = {"key": "task:research", "kind": "task_result", "title": "Research", "value_bytes": 142}
    key = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    source = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # the name is the API's
    value_bytes = serializers.IntegerField(source="size")
    created_at = Moment()
    value = serializers.SerializerMethodField("stored_value", help_text="With `?key=` alone.")

    def stored_value(self, row: RunEntry) -> Any:
        return json.loads(row.json) if self.context.get("values") else None


@extend_schema_field({"type": "object", "additionalProperties": {}})
class Json(serializers.JSONField):
    """Field for a JSON object. Its contents are validated later, by ``chat.runs.services``."""


class EntryBody(Body):
    """A memory entry, in the format that ``runs_memory`` returns."""

    example = {"key": "task:prior_research", "value": {"findings": ["alpha"]}, "title": "Prior research"}
    key = Text(max_length=300, help_text="In any namespace: `step:`, `task:`, `input:` or `shared:`.")
    value = serializers.JSONField(allow_null=True)
    kind = Choice(KINDS, required=False, help_text="As the key says it.")
    title = Text(max_length=200, required=False, allow_null=True, allow_blank=True)
    description = Text(max_length=1000, required=False, allow_null=True, allow_blank=True)
    source = Text(max_length=200, required=False, allow_null=True, allow_blank=True)  # type: ignore[assignment]
    created_at = Moment(required=False, help_text="When it was first written; now without.")
    value_bytes = serializers.IntegerField(required=False, help_text="Not read.")


class StartRunBody(Body):
    example = {"objective": "Compare our three hosting offers and recommend one", "mode": "plan"}
    objective = Text(help_text="What is to be reached; at most 8,000 characters.")
    mode = Choice(choices=RunMode.values, default=RunMode.PLAN)
    inputs = Json(required=False, help_text="An object; its values are the run's `input:` entries.")
    memory = EntryBody(
        many=True,
        required=False,
        help_text="Entries that the run's memory begins with, such as those of an earlier run.",
    )
    tools = serializers.ListField(
        child=Text(max_length=64),
        required=False,
        max_length=20,
        help_text="Of the workspace; the usual without.",
    )
    budget = Json(required=False, help_text="`rounds`, `tokens`, `minutes`, `step_rounds`.")
    plan = Json(required=False, allow_null=True, help_text="`{tasks, members?}`; the model plans without.")
    review_plan = Flag(default=False, help_text="The plan waits for you before anything of it is done.")


class ResumeBody(Body):
    plan = Json(required=False, help_text="In place of one that waits.")
    budget = Json(required=False, help_text="Parts of it that change.")


class RerunBody(Body):
    from_step = Text(required=False, help_text="What does not build on this step is taken over.")


class EntryQuery(PageQuery):
    key = Text(required=False, max_length=300, help_text="This entry alone, with its value.")


class RunList(ApiView):
    @documented("runs_list", page_of(RunLineJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the runs of a workspace.

        Newest first, of all members.
        """
        workspace = get_workspace(self.person, workspace_id)
        runs = Run.objects.visible_to(self.person).filter(workspace=workspace)
        runs = runs.select_related("user", "workspace", "answer").defer("plan", "board", "states")
        return self.page(runs, RunLineJson, descending=True, list_name=f"runs of {workspace_id}")

    @documented("runs_create", {202: RunJson}, body=StartRunBody, headers=ONCE, errors=[409, 429])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Start a run.

        The run works in the background with your rights at the time of each step. 422 with code `model_cannot` if the
        model cannot call tools. Editors and owners only.
        """
        workspace, body = get_workspace(self.person, workspace_id), self.body(StartRunBody)
        now = timezone.now()
        wanted = services.RunRequest(
            body["objective"],
            body["mode"],
            json_object("inputs", body.get("inputs")),
            body.get("tools"),
            json_object("budget", body.get("budget")),
            body.get("plan"),
            body["review_plan"],
            memory=services.given_memory(body.get("memory", ()), now=now),
        )
        run = self.make_once(
            lambda: services.start_run(workspace, wanted, by=self.person, now=now),
            lambda person, public_id: services.get_run(person, workspace, public_id),
        )
        return accepted(self, workspace, run)


class RunDetail(ApiView):
    @documented("runs_get", RunJson)
    def get(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Get a run."""
        workspace = get_workspace(self.person, workspace_id)
        return Response(RunJson(services.get_run(self.person, workspace, run_id)).data)


class RunMemory(ApiView):
    @documented("runs_memory", page_of(RunEntryJson), query=EntryQuery)
    def get(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """List the entries in a run's memory.

        These are the data that its steps share, in the order in which they were first written. To get the value of an
        entry, request it by `key`.
        """
        run = services.get_run(self.person, get_workspace(self.person, workspace_id), run_id)
        key = self.query(EntryQuery).get("key")
        return self.page(
            run.entries.all() if key is None else run.entries.filter(key=key),
            RunEntryJson,
            list_name=f"memory of {run_id} {key}",
            context={"values": key is not None},
        )


class RunEvents(ApiView):
    @documented("runs_events", {(200, "text/event-stream"): EVENTS}, errors=[429])
    def get(self, request: Request, workspace_id: str, run_id: str) -> EventStream:
        """Follow a run as server-sent events."""
        run = services.get_run(self.person, get_workspace(self.person, workspace_id), run_id)
        last = request.headers.get("Last-Event-ID", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 18 else 0
        events = follow_run(self.person, workspace_id, run, after=after)
        return EventStream(events, slot=StreamSlot(self.person))


class RunStop(ApiView):
    @documented("runs_stop", {202: RunJson}, errors=[409])
    def post(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Stop a run.

        Completed steps stay, and you can resume the run later. 409 if it is not running.
        """
        workspace = get_workspace(self.person, workspace_id)
        run = services.get_run(self.person, workspace, run_id)
        return accepted(self, workspace, services.stop_run(run, by=self.person, now=timezone.now()))


class RunResume(ApiView):
    @documented("runs_resume", {202: RunJson}, body=ResumeBody, errors=[409])
    def post(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Resume a run.

        For a run that was stopped or whose plan waits for review; 409 for any other. Its time limit starts again. If
        the run belongs to an answer in a chat, that answer is continued.
        """
        workspace, body = get_workspace(self.person, workspace_id), self.body(ResumeBody)
        run = resume_from_chat(
            services.get_run(self.person, workspace, run_id),
            by=self.person,
            now=timezone.now(),
            plan=body.get("plan"),
            budget=json_object("budget", body.get("budget")),
        )
        return accepted(self, workspace, run)


class RunRerun(ApiView):
    @documented("runs_again", {202: RunJson}, body=RerunBody, errors=[409, 429])
    def post(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Repeat a run.

        Starts a new run with the same objective, plan and inputs. With `from_step`, only that step and those that
        depend on it run again; other results are copied.
        """
        workspace, step = get_workspace(self.person, workspace_id), self.body(RerunBody).get("from_step", "")
        run = services.get_run(self.person, workspace, run_id)
        again = services.rerun(run, by=self.person, now=timezone.now(), from_step=step)
        return accepted(self, workspace, again)


def accepted(view: ApiView, workspace: Workspace, run: Run) -> Response:
    shown = services.get_run(view.person, workspace, run.public_id)
    return Response(RunJson(shown).data, status=status.HTTP_202_ACCEPTED)


def json_object(name: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise serializers.ValidationError({name: _("Must be a JSON object.")})
    return value


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
    name = Text(help_text=f"At most {services.LONGEST_NAME} characters; no other template here has it.")


class StartTemplateBody(Body):
    objective = Text(required=False, help_text="In place of the template's; at most 8,000 characters.")
    inputs = Json(required=False, help_text="An object; its values are the run's `input:` entries.")
    review_plan = Flag(default=False, help_text="The plan waits for you before anything of it is done.")


class RunTemplateList(ApiView):
    @documented("run_templates_list", page_of(RunTemplateJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the run templates of a workspace."""
        workspace = get_workspace(self.person, workspace_id)
        templates = services.templates_of(workspace, self.person).select_related("workspace")
        return self.page(templates, RunTemplateJson, list_name=f"run templates of {workspace_id}")


class RunTemplateSave(ApiView):
    @documented(
        "run_templates_create", {201: RunTemplateJson}, body=SaveTemplateBody, headers=ONCE, errors=[409]
    )
    def post(self, request: Request, workspace_id: str, run_id: str) -> Response:
        """Save a run as a template.

        The template includes the plan. All editors of the workspace can start runs from it. 409 for a private run.
        Editors and owners only.
        """
        workspace = get_workspace(self.person, workspace_id)
        run, name = services.get_run(self.person, workspace, run_id), self.body(SaveTemplateBody)["name"]
        template = self.make_once(
            lambda: services.save_template(run, name, by=self.person, now=timezone.now()),
            lambda person, public_id: services.get_template(workspace, public_id, by=person),
        )
        return Response(RunTemplateJson(template).data, status=status.HTTP_201_CREATED)


class RunTemplateDetail(ApiView):
    @documented("run_templates_delete")
    def delete(self, request: Request, workspace_id: str, template_id: str) -> Response:
        """Delete a template.

        Its creator or an owner of the workspace may do this. Runs that were started from it stay.
        """
        services.delete_template(get_workspace(self.person, workspace_id), template_id, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RunTemplateStart(ApiView):
    @documented(
        "run_templates_start", {202: RunJson}, body=StartTemplateBody, headers=ONCE, errors=[409, 429]
    )
    def post(self, request: Request, workspace_id: str, template_id: str) -> Response:
        """Start a run from a template.

        The mode, plan, tools and budget are those of the template. The run is an ordinary run in all other respects.
        """
        workspace, body = get_workspace(self.person, workspace_id), self.body(StartTemplateBody)
        wanted = services.request_of(
            services.get_template(workspace, template_id, by=self.person),
            objective=body.get("objective", ""),
            inputs=json_object("inputs", body.get("inputs")),
            reviews_plan=body["review_plan"],
        )
        run = self.make_once(
            lambda: services.start_run(workspace, wanted, by=self.person, now=timezone.now()),
            lambda person, public_id: services.get_run(person, workspace, public_id),
        )
        return accepted(self, workspace, run)
