"""Actions on runs (start, stop, resume, change the plan, run again) and on templates of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat.models import Chat, Message
from chat.models.runs import Run, RunMode, RunStatus, RunTemplate
from chat.runs.budget import Limits, Lost, limits_of
from chat.runs.events import record_status
from chat.runs.plan import PlanTrouble, TaskPlan, read_plan
from chat.runs.run_entries import MemoryEntry, MemoryKind, StoredRunEntries, as_json_text, entry_of
from chat.runs.run_memory_tools import LONGEST_KEY, LONGEST_VALUE, MOST_ENTRIES
from chat.runs.scheduling import seed_inputs
from chat.runs.transitions import (
    PLANNING,
    advance_run,
    begin,
    enqueue_worker,
    locked_run,
    stop,
    take_plan,
)
from chat.runs.workspace_tools import default_tools
from chat.tools.memory import X_SAVE_MEMORY
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.localization import grouped
from workspaces.access import get_workspace, lock_to_count, require
from workspaces.model_choice import Chosen, chosen_for
from workspaces.models import Role, User, Workspace
from workspaces.quotas import spend
from workspaces.spending.budgets import require_budget
from workspaces.spending.usage_records import rate_of

LONGEST_OBJECTIVE = 8_000
MOST_INPUTS = 50
KIND_OF = {
    "step": MemoryKind.STEP_RESULT,
    "task": MemoryKind.TASK_RESULT,
    "input": MemoryKind.INPUT,
    "shared": MemoryKind.SHARED,
}
HIGHEST = Limits(rounds=2_000, tokens=5_000_000, minutes=24 * 60, step_rounds=50)


@dataclass(frozen=True)
class RunRequest:
    """A request for a run."""

    objective: str
    mode: str = RunMode.PLAN
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[str] | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    # JSON. Without one the model makes it, or in ``RunMode.LOOP`` the objective is the only step.
    plan: object = None
    reviews_plan: bool = False
    answer: Message | None = None  # the answer of a chat that the run is for
    chat_id: int | None = None  # for a repeated run: the chat of the original
    memory: Sequence[MemoryEntry] = ()  # the entries to start with, from ``given_memory``
    web_urls: Sequence[str] = ()  # found on the web by the run that this one builds on
    held_personal: bool = False  # that run used personal data, so this one is visible to its user only


def validated_plan(wanted: RunRequest, tools: Sequence[str]) -> tuple[TaskPlan | None, Limits]:
    """Return the plan, if any, and the limits of a request, which may name these ``tools``. Raises Invalid."""
    wrong: dict[str, str] = {}
    if not wanted.objective.strip():
        wrong["objective"] = _("must not be blank")
    elif len(wanted.objective) > LONGEST_OBJECTIVE:
        wrong["objective"] = _("may have at most %s characters") % grouped(LONGEST_OBJECTIVE)
    if wanted.mode not in RunMode.values:
        wrong["mode"] = _("Allowed: %s.") % ", ".join(RunMode.values)
    if why := _why_bad_inputs(wanted.inputs):
        wrong["inputs"] = why
    if unknown := [name for name in wanted.tools or () if name not in tools]:
        wrong["tools"] = _("There is no “%(name)s”. Allowed: %(all)s.") % {
            "name": unknown[0][:60],
            "all": ", ".join(tools),
        }
    if wrong:
        raise Invalid(fields=wrong)
    return (None if wanted.plan is None else given_plan(wanted.plan)), given_limits(wanted.budget)


def _why_bad_inputs(inputs: Mapping[str, Any]) -> str:
    if len(inputs) > MOST_INPUTS:
        return _("at most %s are allowed") % MOST_INPUTS
    for name, value in inputs.items():
        if not name or len(name) > LONGEST_KEY or "[" in name or UNSTORABLE.search(name):
            return _("has a name that cannot be used")
        try:
            if len(as_json_text(value)) > LONGEST_VALUE:
                return _("has a value of more than %s characters") % grouped(LONGEST_VALUE)
        except (TypeError, ValueError, RecursionError):
            return _("must be JSON")
    return ""


def given_memory(entries: Sequence[Mapping[str, Any]], *, now: datetime) -> list[MemoryEntry]:
    """Return the entries that a request gives a run to start with. Raises Invalid naming the first wrong field."""
    if len(entries) > MOST_ENTRIES:
        raise Invalid(fields={"memory": _("at most %s are allowed") % grouped(MOST_ENTRIES)})
    valid_entries: dict[str, MemoryEntry] = {}
    for number, entry in enumerate(entries):
        namespace, _colon, name = entry["key"].partition(":")
        kind = KIND_OF.get(namespace)
        if kind is None or not name.strip():
            why = _("must begin with step:, task:, input: or shared:, and go on with a name")
            raise Invalid(fields={f"memory.{number}.key": why})
        if entry.get("kind") not in (None, kind):
            why = _("must be %(kind)s for a key that begins with %(beginning)s")
            raise Invalid(
                fields={f"memory.{number}.kind": why % {"kind": kind, "beginning": f"{namespace}:"}}
            )
        if entry["key"] in valid_entries:
            raise Invalid(fields={f"memory.{number}.key": _("appears twice")})
        try:
            value = as_json_text(entry["value"])
        except (TypeError, ValueError, RecursionError):
            raise Invalid(fields={f"memory.{number}.value": _("must be JSON")}) from None
        written_at = min(entry.get("created_at") or now, now)
        about = (entry.get(field_name) or None for field_name in ("source", "title", "description"))
        valid_entries[entry["key"]] = MemoryEntry(entry["key"], kind, value, written_at, *about)
    return list(valid_entries.values())


def given_plan(plan: object) -> TaskPlan:
    try:
        return read_plan(plan)
    except PlanTrouble as trouble:
        raise Invalid(fields={"plan": str(trouble)[:1000]}) from None


def given_limits(budget: Mapping[str, int]) -> Limits:
    wrong: dict[str, str] = {}
    for name, value in budget.items():
        highest = getattr(HIGHEST, name, None)
        if highest is None:
            wrong[f"budget.{name[:40]}"] = _("is not a part of the budget")
        elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= highest:
            wrong[f"budget.{name}"] = _("must be from 1 to %s") % grouped(highest)
    if wrong:
        raise Invalid(fields=wrong)
    return Limits(**budget)


MOST = 100  # templates of a workspace
LONGEST_NAME = 80


def save_template(run: Run, name: str, *, by: User, now: datetime) -> RunTemplate:
    """Save a run as a template. Raises Invalid, Conflict for a private run or too many templates, and Forbidden."""
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    name = " ".join(name.replace("\x00", "").split())
    if not name or len(name) > LONGEST_NAME:
        raise Invalid(fields={"name": _("must have 1 to %s characters") % LONGEST_NAME})
    if run.is_private:
        raise Conflict(_("This run is private, and everyone in the workspace would read the template."))
    copied = ("mode", "objective", "tools", "limits", "plan", "chat_id")
    values = {field_name: getattr(run, field_name) for field_name in copied}
    try:
        with transaction.atomic():
            lock_to_count(workspace)
            if workspace.run_templates.count() >= MOST:
                raise Conflict(_("There are %s templates here, which is the most. Delete one first.") % MOST)
            return RunTemplate.objects.create(
                workspace=workspace, user=by, name=name, created_at=now, **values
            )
    except IntegrityError:
        raise Invalid(fields={"name": _("is taken by another template")}) from None


def templates_of(workspace: Workspace, user: User) -> QuerySet[RunTemplate]:
    return RunTemplate.objects.visible_to(user).filter(workspace=workspace)


def get_template(workspace: Workspace, public_id: str, *, by: User) -> RunTemplate:
    template = templates_of(workspace, by).filter(public_id=public_id).first()
    if template is None:
        raise NotFound(_("This template does not exist."))
    return template


def request_of(
    template: RunTemplate, *, objective: str, inputs: Mapping[str, Any], reviews_plan: bool
) -> RunRequest:
    """Return a request for a run from this template. An ``objective`` that is not empty replaces the template's."""
    return RunRequest(
        objective or template.objective,
        template.mode,
        inputs,
        template.tools,
        template.limits,
        template.plan,
        reviews_plan,
    )


def delete_template(workspace: Workspace, public_id: str, *, by: User) -> None:
    """Delete a template. Raises Forbidden unless ``by`` is its creator and still an editor, or a workspace owner."""
    require(workspace.role, Role.EDITOR)
    template = get_template(workspace, public_id, by=by)
    if template.user_id != by.pk and not Role(workspace.role).allows(Role.OWNER):
        raise Forbidden(_("Only the person who made a template and the workspace's owners can delete it."))
    template.delete()


MOST_ACTIVE = 50  # unfinished runs per person


def why_no_run(chosen: Chosen) -> str:
    """Return why no run can be started with this model, as a sentence; empty if one can."""
    if chosen.trouble is not None:
        return str(chosen.trouble)
    if not chosen.model.capabilities.has_tools:
        return _(
            "Runs need a model that can call tools, and “%(name)s” cannot. Connect a larger one, "
            "or ask your administrator to."
        ) % {"name": chosen.label}
    return ""


def start_run(workspace: Workspace, wanted: RunRequest, *, by: User, now: datetime) -> Run:
    """Store a run and queue its first step.

    Raises Invalid for wrong fields or a model that cannot call tools, Forbidden for viewers, Conflict if the user has
    too many unfinished runs, TooManyRequests, and BudgetReached.
    """
    require(workspace.role, Role.EDITOR)
    chosen = chosen_for(workspace, by)
    if why := why_no_run(chosen):
        raise Invalid(why, code="model_cannot")
    reading = default_tools(workspace)
    plan, limits = validated_plan(wanted, (*reading, X_SAVE_MEMORY.name))
    _refuse_too_many(by)
    require_budget(workspace.pk, by.pk, lambda: rate_of(chosen), now=now)
    spend("turns", by, now=now)  # runs are the most expensive requests
    with transaction.atomic():
        lock_to_count(by)
        _refuse_too_many(by)
        chat_id = wanted.chat_id if wanted.answer is None else wanted.answer.chat_id
        # Locked, so that a concurrent request that makes the chat private finds the new run.
        chat = Chat.objects.select_for_update(no_key=True).get(pk=chat_id) if chat_id else None
        run = Run.objects.create(
            workspace=workspace,
            user=by,
            chat=chat,
            is_private=wanted.held_personal or (chat is not None and chat.is_private),
            held_personal=wanted.held_personal,
            mode=wanted.mode,
            objective=wanted.objective.strip(),
            answer=wanted.answer,
            web_urls=list(wanted.web_urls),
            reviews_plan=wanted.reviews_plan and wanted.mode != RunMode.LOOP,
            tools=list(reading if wanted.tools is None else dict.fromkeys(wanted.tools)),
            limits=asdict(limits),
            deadline_at=now + timedelta(minutes=limits.minutes),
            created_at=now,
            served_at=now,
            progressed_at=now,
        )
        memory = StoredRunEntries(run_pk=run.pk)
        memory.restore(wanted.memory)
        seed_inputs(memory, wanted.inputs)
        memory.keep()
        begin(run, plan, chosen, now=now)
    return run


def _refuse_too_many(by: User) -> None:
    open_now = Run.objects.filter(user=by).exclude(status__in=[RunStatus.DONE, RunStatus.FAILED])
    if open_now.count() >= MOST_ACTIVE:
        raise Conflict(_("You have %s unfinished runs. Stop or finish some first.") % MOST_ACTIVE)


def get_run(user: User, workspace: Workspace, public_id: str) -> Run:
    rows = Run.objects.visible_to(user).filter(workspace=workspace, public_id=public_id)
    run = rows.select_related("user", "answer__chat").first()
    if run is None:
        raise NotFound(_("This run does not exist, or you do not have access to it."))
    run.workspace = workspace
    return run


def stop_run(run: Run, *, by: User, now: datetime) -> Run:
    """Stop a run. Its running steps end within seconds and their work is stored. Raises Conflict if it has ended."""
    require_control(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.RUNNING, RunStatus.WAITING):
            raise Conflict(_("This run is not running."))
        stop(locked, "", now=now)
    return locked


def resume_run(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """Continue a run that is stopped or waits for a review of its plan.

    ``plan`` replaces the plan, and ``budget`` replaces single limits. The time limit starts again. Raises Conflict if
    the run is in another state, and Invalid for a wrong plan or budget.
    """
    require_control(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.STOPPED, RunStatus.WAITING):
            raise Conflict(_("Only a run that is stopped or waits for you can be resumed."))
        limits = given_limits(asdict(limits_of(locked)) | dict(budget or {}))
        if plan is not None:
            _change_plan(locked, given_plan(plan))
        locked.status, locked.error, locked.limits = RunStatus.RUNNING, "", asdict(limits)
        locked.deadline_at = now + timedelta(minutes=limits.minutes)
        locked.save(update_fields=["status", "error", "limits", "deadline_at"])
        record_status(locked, now=now)
        if locked.plan is None:  # planning continues
            enqueue_worker()
        else:
            advance_run(locked, now=now)
    return locked


def revise_plan(run: Run, plan: object, *, by: User) -> Run:
    """Replace the plan of a waiting run, unless ``plan`` is None, and return the run. Raises Conflict and Invalid."""
    require_control(run, by)
    with _locked(run) as locked:
        if locked.status != RunStatus.WAITING:
            raise Conflict(_("This plan is no longer waiting."))
        if plan is not None:
            _change_plan(locked, given_plan(plan))
    return locked


def may_steer(run: Run, role: str, user: User) -> bool:
    """Return whether a user with this ``role`` in the workspace may stop and resume the run."""
    return Role(role).allows(_needed(run, user))


def require_control(run: Run, by: User) -> None:
    get_workspace(by, run.workspace.public_id, need=_needed(run, by))


def _needed(run: Run, user: User) -> Role:
    """Return the role that ``user`` needs to change the run: editor for an own run, owner for another's."""
    return Role.EDITOR if run.user_id == user.pk else Role.OWNER


def _change_plan(run: Run, plan: TaskPlan) -> None:
    if run.states.get("steps") or any(step.ref != PLANNING for step in run.steps.all()):
        raise Conflict(_("Some of this plan is done already, so it cannot be changed."))
    take_plan(run, plan)


@contextmanager
def _locked(run: Run) -> Iterator[Run]:
    try:
        with locked_run(run.pk) as locked:
            yield locked
    except Lost:
        raise NotFound(_("This run does not exist, or you do not have access to it.")) from None


def rerun(run: Run, *, by: User, now: datetime, from_step: str = "") -> Run:
    """Start a new run with the same objective, plan and inputs.

    With ``from_step``, only that step and the steps that depend on it run again; other results are copied. Raises
    Invalid if the plan has no such step.
    """
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    # Entries of the request are not newer than the run. Steps and inputs wrote newer entries.
    request_entries = run.entries.filter(created_at__lte=run.created_at, version=1)
    seeded = run.entries.filter(kind="input", created_at__gt=run.created_at).exclude(key__contains="[")
    inputs = [entry_of(row) for row in seeded]
    wanted = RunRequest(
        run.objective,
        run.mode,
        {entry.key.removeprefix("input:"): entry.value for entry in inputs},
        run.tools,
        run.limits,
        run.plan,
        memory=[entry_of(row) for row in request_entries],
        chat_id=run.chat_id,
        web_urls=run.web_urls,
        held_personal=run.held_personal,
    )
    if not from_step:
        return start_run(workspace, wanted, by=by, now=now)
    if run.plan is None or run.board is not None:
        raise Invalid(_("Only a planned run can be done again from a step."))
    redone = _affected_by(read_plan(run.plan), from_step)
    with transaction.atomic():
        again = start_run(workspace, wanted, by=by, now=now)
        again.steps.all().delete()
        copied_entries = _entries_to_copy(run, redone)
        memory = StoredRunEntries(run_pk=again.pk)
        memory.restore(copied_entries)
        memory.keep()
        names = {entry.key.partition(":")[2] for entry in copied_entries}
        again.states = {
            what: {
                name: state
                for name, state in run.states[what].items()
                if state == "done" and name in names and name.partition("[")[0] not in redone[what]
            }
            for what in ("steps", "tasks")
        }
        advance_run(again, now=now)
    return again


def _entries_to_copy(run: Run, redone: Mapping[str, set[str]]) -> list[MemoryEntry]:
    """Return the entries of what does not run again. A ``shared:`` entry belongs to the step that published it."""
    entries = []
    for row in run.entries.all():
        kind, _colon, name = row.key.partition(":")
        of = {"step": "steps", "task": "tasks", "input": "steps", "shared": "steps"}.get(kind)
        name = row.source or "" if kind == "shared" else name
        if of and name.partition("[")[0] not in redone[of]:
            entries.append(entry_of(row))
    return entries


def _affected_by(plan: TaskPlan, step_id: str) -> dict[str, set[str]]:
    """Return the ids of this step, its task and all that depend on them, by kind. Raises Invalid for an unknown id."""
    first = next((task for task in plan.tasks if any(step.id == step_id for step in task.steps)), None)
    if first is None:
        raise Invalid(_("There is no such step."), fields={"from_step": _("is not in the plan")})
    tasks, steps = {first.id}, {step_id}
    for _each in plan.tasks:
        tasks |= {task.id for task in plan.tasks if tasks & set(task.depends_on)}
        steps |= {step.id for step in first.steps if steps & set(step.depends_on)}
    steps |= {step.id for task in plan.tasks if task.id in tasks - {first.id} for step in task.steps}
    return {"tasks": tasks, "steps": steps}
