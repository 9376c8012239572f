"""Pages of runs: the list of a workspace, and one run with its tasks, memory, cost and log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.models.runs import Run, RunEvent, RunMode, RunStatus, RunStepStatus
from chat.rendering.stored_html import html_or_source
from chat.runs import plan as plan_edits
from chat.runs import services
from chat.runs.budget import estimated_for, limits_of
from chat.runs.run_display import planning_of, result_text, tasks_for_people, title_shown, with_sources
from chat.runs.transitions import PLANNING
from chat.runs.workspace_tools import default_tools
from chat.turns.services import resume_from_chat
from chat.views.shown_messages import plan_in, planned, rows_in
from memories.models import Memory
from memoryhub.errors import NotFound
from memoryhub.localization import grouped, isolated
from workspaces.access import get_workspace
from workspaces.model_choice import chosen_for
from workspaces.models import Role, User, Workspace
from workspaces.spending.usage_records import rate_of
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm

RUN_IS: dict[str, str | Promise] = {
    RunStatus.RUNNING: later("The run goes on"),
    RunStatus.WAITING: later("The plan waits for a person"),
    RunStatus.STOPPED: later("The run was stopped"),
    RunStatus.DONE: later("The run is done"),
    RunStatus.FAILED: later("The run failed"),
}
USED: dict[str, str | Promise] = {
    "web_search": later("Searched the web"),
    "read_web_page": later("Read a web page"),
    "x_save_memory": later("Saved to memory"),
    "x_recall_memory": later("Searched memory"),
    "x_workspace_search": later("Searched the workspace"),
    "team_board": later("Looked at the team's tasks"),
    "send_message": later("Sent a message to the team"),
    "read_messages": later("Read the team's messages"),
    "add_task": later("Added a task"),
    "release_task": later("Gave the task back"),
}
# These tools are logged by their own memory events.
OWN_MEMORY = ("memory_list", "memory_read", "memory_write")
SHOWN = 5  # limit of memory entries named in one line


@dataclass(frozen=True)
class Line:
    at: datetime
    about: str  # title of the task, or ""
    text: str


@dataclass(frozen=True)
class Titles:
    """Titles of a run's tasks for its log, by task id (``tasks``) and by step id (``steps``)."""

    tasks: dict[str, str]
    steps: dict[str, str]

    @classmethod
    def of(cls, tasks: Iterable[dict[str, Any]]) -> Titles:
        listed = list(tasks)
        steps = {step["id"]: task["title"] for task in listed for step in task["steps"]}
        return cls({task["id"]: task["title"] for task in listed}, {PLANNING: _("Plan"), **steps})

    def entry(self, key: str, title: str = "") -> str:
        """Return the title that the log shows for an entry of the run's memory, such as "Result of “Compare prices”".

        ``key``: the entry's key, such as ``task:<id>``. ``title``: the entry's own title; if it is empty, the title of
        the task or step is used, or else the name in the key. Entries of the kind ``input`` always show that name.
        """
        kind, _colon, name = key.partition(":")
        if kind == "task":
            return _("Result of “%(name)s”") % {"name": isolated(title or self.tasks.get(name, name))}
        if kind == "step":
            return _("Step of “%(name)s”") % {"name": isolated(title or self.steps.get(name, name))}
        if kind == "input":
            return _("Given: %(name)s") % {"name": isolated(name)}
        return title or name or key


def log_of(events: Iterable[RunEvent], titles: Titles) -> list[Line]:
    """Return the log lines of the events that are shown to users, in the same order."""
    told = [(event, _said(event.kind, event.data, titles)) for event in events]
    return [Line(event.at, titles.steps.get(event.step, ""), text) for event, text in told if text]


def _said(kind: str, data: dict[str, Any], titles: Titles) -> str:
    if kind == "run":
        return str(RUN_IS.get(data.get("status", ""), ""))
    if kind == "step":
        return _("Step done") if data.get("status") == RunStepStatus.DONE else _("Step failed")
    if kind == "reply":
        counted = {name: grouped(int(data.get(name, 0))) for name in ("round", "tokens_in", "tokens_out")}
        return _("Reply %(round)s of the model: %(tokens_in)s tokens in, %(tokens_out)s out") % counted
    if kind == "tool":
        name = str(data.get("name", ""))
        if not data.get("ok"):
            return _("%(tool)s did not work") % {"tool": name}
        return "" if name in OWN_MEMORY else str(USED.get(name) or _("Used %(tool)s") % {"tool": name})
    return _of_memory(data, titles) if kind == "memory" else ""


def _of_memory(data: dict[str, Any], titles: Titles) -> str:
    if data.get("op") == "list":
        count = int(data.get("returned", 0))
        text = ngettext(
            "Looked at %(count)d entry of the run's memory",
            "Looked at %(count)d entries of the run's memory",
            count,
        )
        return text % {"count": count}
    keys = [str(key) for key in data.get("keys", ())]
    if not keys:
        return ""
    names = ", ".join(titles.entry(key) for key in keys[:SHOWN]) + (" …" if len(keys) > SHOWN else "")
    return (_("Read: %(names)s") if data.get("op") == "read" else _("Wrote: %(names)s")) % {"names": names}


WIDTH, HEIGHT = 150, 44  # size of a task's box in SVG units
GAP, DOWN = 14, 40  # horizontal gap between boxes, vertical gap between levels
LONGEST_TITLE = 20


@dataclass(frozen=True)
class Node:
    id: str
    title: str
    status: str
    x: int
    y: int

    @property
    def label(self) -> str:
        return self.title if len(self.title) <= LONGEST_TITLE else f"{self.title[: LONGEST_TITLE - 1]}…"

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + WIDTH // 2, self.y + HEIGHT // 2 + 5


@dataclass(frozen=True)
class Graph:
    nodes: list[Node]
    lines: list[str]  # SVG path data
    width: int
    height: int
    node_width: int = WIDTH
    node_height: int = HEIGHT


def graph_of(tasks: Sequence[dict[str, Any]]) -> Graph | None:
    """Return a diagram of the tasks and their dependencies, or None for fewer than two tasks."""
    if len(tasks) < 2:
        return None
    levels = _levels({task["id"]: task["depends_on"] for task in tasks})
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        rows[levels[task["id"]]].append(task)
    width = max(len(row) for row in rows.values()) * (WIDTH + GAP) - GAP
    nodes = {}
    for level, row in rows.items():
        for n, task in enumerate(row):
            x, y = _left(n, len(row), width), level * (HEIGHT + DOWN)
            nodes[task["id"]] = Node(task["id"], task["title"], task["status"], x, y)
    edges = [(name, task["id"]) for task in tasks for name in task["depends_on"] if name in nodes]
    lines = [_line(nodes[above], nodes[below]) for above, below in edges]
    return Graph(list(nodes.values()), lines, width, len(rows) * (HEIGHT + DOWN) - DOWN)


def _left(number: int, of: int, width: int) -> int:
    return (width - (of * (WIDTH + GAP) - GAP)) // 2 + number * (WIDTH + GAP)


def _levels(needs: dict[str, Sequence[str]]) -> dict[str, int]:
    """Return for each task the length of the longest chain of dependencies before it. A cycle is no problem."""
    levels = dict.fromkeys(needs, 0)
    for _round in needs:
        levels = {name: max((levels[n] + 1 for n in needs[name] if n in levels), default=0) for name in needs}
    return levels


def _line(above: Node, below: Node) -> str:
    x1, y1, x2, y2 = above.x + WIDTH // 2, above.y + HEIGHT, below.x + WIDTH // 2, below.y
    return f"M{x1} {y1} C{x1} {y1 + DOWN // 2} {x2} {y2 - DOWN // 2} {x2} {y2}"


LISTED = 50
LOGGED = 100  # limit of a run's newest events
ENTRIES = 200  # limit of a run's newest memory entries
LONGEST_RESULT = 60_000  # limit in characters of a result on the page, enough for any text result
LONGEST_VALUE = 20_000  # limit in characters of a value on the page
MODES = [
    (RunMode.PLAN, later("Plan, then work")),
    (RunMode.LOOP, later("One step, without a plan")),
    (RunMode.TEAM, later("A team of three")),
    (RunMode.RESEARCH, later("Research, with a report that names its sources")),
]


class RunForm(DomainForm):
    objective = forms.CharField(
        label=later("Task"),
        max_length=services.LONGEST_OBJECTIVE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=later("Describe the task in full."),
    )
    mode = forms.ChoiceField(label=later("Method"), choices=MODES)
    tokens = forms.IntegerField(
        label=later("Token limit"), initial=400_000, min_value=1_000, max_value=5_000_000
    )
    template = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)
    saves = forms.BooleanField(label=later("It may save what it finds to memory"), required=False)
    reviews_plan = forms.BooleanField(label=later("Show me the plan first"), required=False, initial=True)


@require_http_methods(["GET", "POST"])
def runs(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the runs of a workspace, newest first, with the form for a new one (GET), or start a run (POST)."""
    if request.method == "GET":
        workspace = get_workspace(request.user, ws_id)
        return _runs(request, workspace, _form_for(workspace, request.GET.get("template", ""), request.user))
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    form = RunForm(request.POST)

    def start() -> Run:
        data, template = form.cleaned_data, None
        if data["template"]:
            template = services.get_template(workspace, data["template"], by=request.user)
        wanted = services.RunRequest(
            data["objective"],
            data["mode"],
            tools=[*default_tools(workspace), *(["x_save_memory"] if data["saves"] else [])],
            budget={"tokens": data["tokens"]},
            reviews_plan=data["reviews_plan"],
            plan=template.plan if template and template.mode == data["mode"] else None,
        )
        return services.start_run(workspace, wanted, by=request.user, now=timezone.now())

    if run := form.done(start):
        return redirect("chat:run", ws_id, run.public_id)
    return _runs(request, workspace, form, status=422)


def _form_for(workspace: Workspace, template_id: str, user: User) -> RunForm:
    """Return the form for a new run, filled in from the template if there is one."""
    if not template_id:
        return RunForm()
    template = services.get_template(workspace, template_id, by=user)
    initial = {
        "objective": template.objective,
        "mode": template.mode,
        "tokens": template.limits.get("tokens"),
        "saves": "x_save_memory" in template.tools,
        "reviews_plan": True,
        "template": template.public_id,
    }
    return RunForm(initial={name: value for name, value in initial.items() if value is not None})


def _runs(request: PageRequest, workspace: Workspace, form: RunForm, status: int = 200) -> HttpResponse:
    shown = request.GET.get("status", "")
    rows = Run.objects.visible_to(request.user).filter(workspace=workspace)
    rows = rows.select_related("user").defer("plan", "board", "states")
    if shown in RunStatus.values:
        rows = rows.filter(status=shown)
    chosen = chosen_for(workspace, request.user)
    user, price = request.user, rate_of(chosen).price
    context = {
        "workspace": workspace,
        "runs": rows[:LISTED],
        "form": form,
        "why_not": services.why_no_run(chosen),
        "can_write": Role(workspace.role).allows(Role.EDITOR),
        "is_owner": Role(workspace.role).allows(Role.OWNER),
        "shown": shown,
        "filters": RunStatus.choices,
        "templates": services.templates_of(workspace, request.user).select_related("user"),
        "estimates": [(label, estimated_for(workspace.pk, user, mode, price=price)) for mode, label in MODES],
    }
    return render(request, "chat/runs.html", context, status=status)


@require_GET
def run(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    return render(request, "chat/run.html", _context(_run(request, ws_id, run_id), request.user))


@require_GET
def live(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    """Show the current state of a run. The page polls this view."""
    return render(request, "chat/run_live.html", _context(_run(request, ws_id, run_id), request.user))


@require_GET
def entry(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    """Show the value of an entry in a run's memory."""
    entries = _run(request, ws_id, run_id).entries
    row = entries.filter(key=request.GET.get("key", "").replace("\x00", "")).first()
    if row is None:
        raise NotFound(_("This entry does not exist."))
    value = json.loads(row.json)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    text = text.encode(errors="replace").decode()
    context = {"entry": row, "text": text[:LONGEST_VALUE], "is_cut": len(text) > LONGEST_VALUE}
    return render(request, "chat/run_entry.html", context)


@require_POST
def stop(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    services.stop_run(_run(request, ws_id, run_id), by=request.user, now=timezone.now())
    return redirect("chat:run", ws_id, run_id)


@require_POST
def resume(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    """Resume a run. If the form has an edited plan, the run continues with it."""
    loaded_run = _run(request, ws_id, run_id)
    resume_from_chat(loaded_run, by=request.user, now=timezone.now(), plan=plan_in(loaded_run, request.POST))
    return redirect("chat:run", ws_id, run_id)


@require_POST
def plan(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    """Move, remove or add a task in a plan that waits for review, and show it. Texts typed in the form stay."""
    loaded_run = _run(request, ws_id, run_id)
    rows, focus = plan_edits.changed(rows_in(request.POST), request.POST.get("do", ""))
    new = plan_edits.edited(loaded_run.plan, rows) if loaded_run.plan else {"tasks": []}
    loaded_run.plan = services.revise_plan(loaded_run, new if new["tasks"] else None, by=request.user).plan
    shown = planned(loaded_run, can_steer=True, rows=rows, focus=focus)
    context: dict[str, Any] = {"workspace": loaded_run.workspace, "plan": shown}
    if "in_chat" in request.POST and loaded_run.answer is not None:
        context |= {"chat": loaded_run.answer.chat, "message": loaded_run.answer}
    return render(request, "chat/plan.html", context)


@require_POST
def repeat(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    loaded_run, step = _run(request, ws_id, run_id), request.POST.get("from_step", "")
    new_run = services.rerun(loaded_run, by=request.user, now=timezone.now(), from_step=step)
    return redirect("chat:run", ws_id, new_run.public_id)


@require_POST
def keep(request: PageRequest, ws_id: str, run_id: str) -> HttpResponse:
    """Save a run as a template."""
    loaded_run, name = _run(request, ws_id, run_id), request.POST.get("name", "")
    template = services.save_template(loaded_run, name, by=request.user, now=timezone.now())
    return redirect(f"{reverse('chat:runs', args=[ws_id])}?template={template.public_id}")


@require_POST
def delete(request: PageRequest, ws_id: str, template_id: str) -> HttpResponse:
    services.delete_template(get_workspace(request.user, ws_id), template_id, by=request.user)
    return redirect("chat:runs", ws_id)


def _run(request: PageRequest, ws_id: str, run_id: str) -> Run:
    return services.get_run(request.user, get_workspace(request.user, ws_id), run_id)


def _context(run: Run, user: User) -> dict[str, Any]:
    can_steer = services.may_steer(run, run.workspace.role, user)
    entries = list(run.entries.defer("json").order_by("-created_at", "-id")[:ENTRIES])[::-1]
    saved = Memory.objects.visible_to(user).filter(public_id__in=run.memory_ids).select_related("workspace")
    result = result_text(run) if run.status == RunStatus.DONE else ""
    limits, tasks = limits_of(run), tasks_for_people(run)
    titles = Titles.of(tasks)
    for row in entries:
        row.shown = titles.entry(row.key, title_shown(row.title or ""))  # type: ignore[attr-defined]
    return {
        "workspace": run.workspace,
        "run": run,
        "tasks": tasks,
        "graph": graph_of(tasks),
        "plan": planned(run, can_steer=can_steer),
        "planning": planning_of(run),
        "result": html_or_source(with_sources(run, result[:LONGEST_RESULT], user)) if result else "",
        "is_result_cut": len(result) > LONGEST_RESULT,
        "entries": entries,
        "log": log_of(run.events.order_by("-pk")[:LOGGED], titles),
        "saved": [memory for memory in saved if memory.is_live],
        "tokens": run.tokens_in + run.tokens_out,
        "limits": limits,
        "spent": min(100, round(100 * (run.tokens_in + run.tokens_out) / limits.tokens)),
        "is_open": run.status == RunStatus.RUNNING,
        "can_steer": can_steer,
        "can_write": Role(run.workspace.role).allows(Role.EDITOR),
    }
