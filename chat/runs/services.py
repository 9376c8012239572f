"""Actions on runs: start, stop, resume, change the plan, run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import Chat
from chat.models.runs import Run, RunMode, RunStatus
from chat.runs.executors import seed_inputs
from chat.runs.memory import MemoryEntry
from chat.runs.plan import TaskPlan
from chat.runs.progress import (
    EXPECTED,
    PLANNING,
    alone,
    begin,
    enqueue_worker,
    go_on,
    plan_of,
    stop,
    take_plan,
)
from chat.runs.requests import RunRequest, checked, given_limits, given_plan
from chat.runs.stored_run import Lost, StoredMemory, entry_of, limits_of, record_event
from chat.runs.workspace_tools import default_tools, offered
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace, lock_to_count, require
from workspaces.connections import Chosen, chosen_for
from workspaces.models import Role, User, Workspace
from workspaces.quotas import spend
from workspaces.spending.bill import rate_of
from workspaces.spending.budgets import require_budget

MOST_ACTIVE = 50  # unfinished runs per person


def why_not(chosen: Chosen) -> str:
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
    """Store a run and queue its first step. Raises Invalid naming every wrong field, or if the model cannot run it;
    Forbidden for viewers; Conflict for too many unfinished runs; TooManyRequests; BudgetReached.
    """
    require(workspace.role, Role.EDITOR)
    chosen = chosen_for(workspace, by)
    if why := why_not(chosen):
        raise Invalid(why, code="model_cannot")
    plan, limits = checked(wanted, offered(workspace))
    _refuse_too_many(by)
    require_budget(workspace.pk, by.pk, lambda: rate_of(chosen), now=now)
    spend("turns", by, now=now)  # runs are the most expensive requests
    with transaction.atomic():
        lock_to_count(by)
        _refuse_too_many(by)
        chat = _locked_chat(wanted.chat_id if wanted.answer is None else wanted.answer.chat_id)
        run = Run.objects.create(
            workspace=workspace,
            user=by,
            chat=chat,
            is_private=wanted.held_personal or (chat is not None and chat.is_private),
            held_personal=wanted.held_personal,
            mode=wanted.mode,
            objective=wanted.objective.strip(),
            plan=plan.as_json() if plan else None,
            answer=wanted.answer,
            web_urls=list(wanted.web_urls),
            reviews_plan=wanted.reviews_plan and wanted.mode != RunMode.LOOP,
            tools=list(default_tools(workspace) if wanted.tools is None else dict.fromkeys(wanted.tools)),
            limits=asdict(limits),
            deadline_at=now + timedelta(minutes=limits.minutes),
            created_at=now,
            served_at=now,
            progressed_at=now,
        )
        _fill(run, wanted)
        begin(run, now=now)
    return run


def _refuse_too_many(by: User) -> None:
    open_now = Run.objects.filter(user=by).exclude(status__in=[RunStatus.DONE, RunStatus.FAILED])
    if open_now.count() >= MOST_ACTIVE:
        raise Conflict(_("You have %s runs that are not over. Stop or finish some first.") % MOST_ACTIVE)


def _locked_chat(chat_id: int | None) -> Chat | None:
    """Return the chat, locked until the run is stored, so that a request that makes the chat private finds the run."""
    return None if chat_id is None else Chat.objects.select_for_update(no_key=True).get(pk=chat_id)


def get_run(user: User, workspace: Workspace, public_id: str) -> Run:
    rows = Run.objects.visible_to(user).filter(workspace=workspace, public_id=public_id)
    run = rows.select_related("user", "answer__chat").first()
    if run is None:
        raise NotFound(_("This run does not exist, or you do not have access to it."))
    run.workspace = workspace
    return run


def stop_run(run: Run, *, by: User, now: datetime) -> Run:
    """Stop a run. Running steps notice it within seconds and are stored as they are. Raises Conflict if the run is not
    running or waiting.
    """
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.RUNNING, RunStatus.WAITING):
            raise Conflict(_("This run is not running."))
        stop(locked, "", now=now)
    return locked


def resume_run(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """Continue a stopped run, or a run that waits for a review of its plan, optionally with a changed ``plan`` and
    ``budget``. The time limit starts again. Raises Conflict if the run is in another state, and Invalid for a wrong
    plan or budget.
    """
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.STOPPED, RunStatus.WAITING):
            raise Conflict(_("Only a stopped run, or one that waits for you, can go on."))
        limits = given_limits(asdict(limits_of(locked)) | dict(budget or {}))
        if plan is not None:
            _change_plan(locked, given_plan(plan))
        locked.status, locked.error, locked.limits = RunStatus.RUNNING, "", asdict(limits)
        locked.deadline_at = now + timedelta(minutes=limits.minutes)
        locked.save(
            update_fields=[
                "status",
                "error",
                "limits",
                "deadline_at",
                "plan",
                "board",
                "states",
                *EXPECTED,
            ]
        )
        record_event(locked, "run", {"status": locked.status}, now=now)
        if locked.plan is None:  # planning continues
            enqueue_worker()
        else:
            go_on(locked, now=now)
    return locked


def revise_plan(run: Run, plan: object, *, by: User) -> Run:
    """Replace the plan that waits for review, if ``plan`` is given, and return the run. Raises Conflict if the run does
    not wait, and Invalid for a wrong plan.
    """
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status != RunStatus.WAITING:
            raise Conflict(_("This plan does not wait for anybody any more."))
        if plan is not None:
            _change_plan(locked, given_plan(plan))
    return locked


def may_steer(run: Run, role: str, user: User) -> bool:
    """Return whether this person may stop and resume the run, with this role in its workspace."""
    return Role(role).allows(_needed(run, user))


def require_hand(run: Run, by: User) -> None:
    get_workspace(by, run.workspace.public_id, need=_needed(run, by))


def _needed(run: Run, user: User) -> Role:
    """Return the role needed to change the run: editor for the user who started it, owner for others."""
    return Role.EDITOR if run.user_id == user.pk else Role.OWNER


def _change_plan(run: Run, plan: TaskPlan) -> None:
    if run.states.get("steps") or any(step.ref != PLANNING for step in run.steps.all()):
        raise Conflict(_("Some of this plan is done already, so it cannot be changed."))
    run.plan = plan.as_json()
    take_plan(run)


@contextmanager
def _locked(run: Run) -> Iterator[Run]:
    try:
        with alone(run.pk) as locked:
            yield locked
    except Lost:
        raise NotFound(_("This run does not exist, or you do not have access to it.")) from None


def _fill(run: Run, wanted: RunRequest) -> None:
    memory = StoredMemory(run_pk=run.pk, waits=True)
    memory.restore(wanted.memory)
    seed_inputs(memory, wanted.inputs)
    memory.keep()


def rerun(run: Run, *, by: User, now: datetime, from_step: str = "") -> Run:
    """Start a new run with the same objective, plan and inputs. With ``from_step``, results that do not depend on that
    step are copied. Raises Invalid for a step that is not in the plan.
    """
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    # Entries of the request are not newer than the run. Steps and inputs wrote newer entries.
    given = run.entries.filter(created_at__lte=run.created_at, version=1)
    seeded = run.entries.filter(kind="input", created_at__gt=run.created_at).exclude(key__contains="[")
    inputs = [entry_of(row) for row in seeded]
    wanted = RunRequest(
        run.objective,
        run.mode,
        {entry.key.removeprefix("input:"): entry.value for entry in inputs},
        run.tools,
        run.limits,
        run.plan,
        memory=[entry_of(row) for row in given],
        chat_id=run.chat_id,
        web_urls=run.web_urls,
        held_personal=run.held_personal,
    )
    if not from_step:
        return start_run(workspace, wanted, by=by, now=now)
    if run.plan is None or run.board is not None:
        raise Invalid(_("Only a planned run can be done again from a step."))
    redone = _built_on(plan_of(run), from_step)
    with transaction.atomic():
        again = start_run(workspace, wanted, by=by, now=now)
        again.steps.all().delete()
        kept = _kept(run, redone)
        StoredMemory(run_pk=again.pk).restore(kept)
        names = {entry.key.partition(":")[2] for entry in kept}
        again.states = {
            what: {
                name: state
                for name, state in run.states[what].items()
                if state == "done" and name in names and name.partition("[")[0] not in redone[what]
            }
            for what in ("steps", "tasks")
        }
        go_on(again, now=now)
    return again


def _kept(run: Run, redone: Mapping[str, set[str]]) -> list[MemoryEntry]:
    """Return the entries that are not made again. A ``shared:`` entry belongs to the step that published it."""
    found = []
    for row in run.entries.all():
        kind, _colon, name = row.key.partition(":")
        of = {"step": "steps", "task": "tasks", "input": "steps", "shared": "steps"}.get(kind)
        name = row.source or "" if kind == "shared" else name
        if of and name.partition("[")[0] not in redone[of]:
            found.append(entry_of(row))
    return found


def _built_on(plan: TaskPlan, step_id: str) -> dict[str, set[str]]:
    """Return the step with this id, its task, and all steps and tasks that depend on them. Raises Invalid for an
    unknown id.
    """
    first = next((task for task in plan.tasks if any(step.id == step_id for step in task.steps)), None)
    if first is None:
        raise Invalid(_("There is no such step."), fields={"from_step": _("is not in the plan")})
    tasks, steps = {first.id}, {step_id}
    for _each in plan.tasks:
        tasks |= {task.id for task in plan.tasks if tasks & set(task.depends_on)}
        steps |= {step.id for step in first.steps if steps & set(step.depends_on)}
    steps |= {step.id for task in plan.tasks if task.id in tasks - {first.id} for step in task.steps}
    return {"tasks": tasks, "steps": steps}
