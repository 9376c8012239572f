"""Starting runs, stopping them, going on with them and doing them again: what every door calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from chat.agents.budget import Limits
from chat.agents.course import PLANNING, alone, begin, go_on, hurry, plan_of, take_plan
from chat.agents.memory_tools import LONGEST_KEY, LONGEST_VALUE
from chat.agents.plan import PlanTrouble, TaskPlan, read_plan
from chat.agents.run_memory import MemoryEntry, as_json_text
from chat.agents.run_tools import offered, usual
from chat.agents.stored_run import Lost, StoredMemory, entry_of, limits_of, note
from chat.agents.task import seed_inputs
from chat.models import Chat, Message
from chat.models.runs import Run, RunMode, RunStatus
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace, require
from workspaces.connections.choice import Chosen, chosen_for
from workspaces.models import Role, User, Workspace
from workspaces.throttles import spend

LONGEST_OBJECTIVE = 8_000
MOST_ACTIVE = 50  # runs of one person that are not over
MOST_INPUTS = 50
HIGHEST = Limits(rounds=2_000, tokens=5_000_000, minutes=24 * 60, step_rounds=50)


@dataclass(frozen=True)
class Wanted:
    """What somebody asks for. ``plan``: as JSON; without one the model plans, but for a run of one step."""

    objective: str
    mode: str = RunMode.PLAN
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[str] | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    plan: object = None
    reviews_plan: bool = False
    answer: Message | None = None  # in a chat, for which it is done
    is_private: bool = False  # of an answer, as its chat is
    web_urls: Sequence[str] = ()  # of the run whose results it builds on: it was on the web by them


def why_not(chosen: Chosen) -> str:
    """Why no run can be started with this model, in a sentence; empty where one can."""
    if chosen.trouble is not None:
        return str(chosen.trouble)
    if not chosen.model.capabilities.has_tools:
        return _(
            "Runs need a model that can call tools, and “%(name)s” cannot. Connect a larger one in the workspace's "
            "settings, or ask whoever runs this MemoryHub to."
        ) % {"name": chosen.label}
    return ""


def start_run(workspace: Workspace, wanted: Wanted, *, by: User, now: datetime) -> Run:
    """Store a run and queue its first step. Raises Invalid naming every field that is wrong, also where the model
    cannot do it; Forbidden for viewers; Conflict for too many at once; TooManyRequests.
    """
    require(workspace.role, Role.EDITOR)
    if why := why_not(chosen_for(workspace, by)):
        raise Invalid(why, code="model_cannot")
    plan, limits = _checked(wanted, offered(workspace))
    open_now = Run.objects.filter(user=by).exclude(status__in=[RunStatus.DONE, RunStatus.FAILED])
    if open_now.count() >= MOST_ACTIVE:
        raise Conflict(_("You have %s runs that are not over. Stop or finish some first.") % MOST_ACTIVE)
    spend("turns", by, now=now)  # the dearest thing that a person can ask for
    with transaction.atomic():
        run = Run.objects.create(
            workspace=workspace,
            user=by,
            mode=wanted.mode,
            objective=wanted.objective.strip(),
            plan=plan.as_json() if plan else None,
            answer=wanted.answer,
            is_private=wanted.is_private if wanted.answer is None else _is_in_private(wanted.answer),
            web_urls=list(wanted.web_urls),
            reviews_plan=wanted.reviews_plan and wanted.mode != RunMode.LOOP,
            tools=list(usual(workspace) if wanted.tools is None else dict.fromkeys(wanted.tools)),
            limits=asdict(limits),
            deadline_at=now + timedelta(minutes=limits.minutes),
            created_at=now,
            served_at=now,
            progressed_at=now,
        )
        _fill(run, wanted.inputs)
        begin(run, now=now)
    return run


def _is_in_private(answer: Message) -> bool:
    """As it is now, and until the run is stored: who makes the chat private then finds it."""
    return Chat.objects.select_for_update(no_key=True).get(pk=answer.chat_id).is_private


def get_run(user: User, workspace: Workspace, public_id: str) -> Run:
    rows = Run.objects.visible_to(user).filter(workspace=workspace, public_id=public_id)
    run = rows.select_related("user").first()
    if run is None:
        raise NotFound(_("This run does not exist, or you do not have access to it."))
    run.workspace = workspace
    return run


def stop_run(run: Run, *, by: User, now: datetime) -> Run:
    """What is being done hears of it within seconds, and is kept as it stands. Raises Conflict where nothing runs."""
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.RUNNING, RunStatus.WAITING):
            raise Conflict(_("This run is not running."))
        locked.status, locked.error = RunStatus.STOPPED, ""
        locked.save(update_fields=["status", "error"])
        note(locked, "run", {"status": locked.status}, now=now)
    return locked


def resume_run(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """Go on with a stopped run, or with one whose plan was waited for, which may come back changed. The minutes count
    anew. Raises Conflict, Invalid.
    """
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status not in (RunStatus.STOPPED, RunStatus.WAITING):
            raise Conflict(_("Only a stopped run, or one that waits for you, can go on."))
        limits = _limits(asdict(limits_of(locked)) | dict(budget or {}))
        if plan is not None:
            _change_plan(locked, _read(plan))
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
                "expected_tokens",
            ]
        )
        note(locked, "run", {"status": locked.status}, now=now)
        if locked.plan is None:  # its planning goes on
            hurry()
        else:
            go_on(locked, now=now)
    return locked


def run_again(run: Run, *, by: User, now: datetime, from_step: str = "") -> Run:
    """A new run of the same objective, plan and inputs. ``from_step``: what does not build on that step is taken over
    from this one. Raises Invalid for a step that is not in the plan.
    """
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    inputs = [entry_of(row) for row in run.entries.filter(kind="input").exclude(key__contains="[")]
    wanted = Wanted(
        run.objective,
        run.mode,
        {entry.key.removeprefix("input:"): entry.value for entry in inputs},
        run.tools,
        run.limits,
        run.plan,
        is_private=run.is_private,
        web_urls=run.web_urls,
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
    found = []
    for row in run.entries.all():
        kind, _colon, name = row.key.partition(":")
        of = {"step": "steps", "task": "tasks", "input": "steps"}.get(kind)
        if of and name.partition("[")[0] not in redone[of]:
            found.append(entry_of(row))
    return found


def _built_on(plan: TaskPlan, step_id: str) -> dict[str, set[str]]:
    """The step and task of that id, and all that build on them."""
    first = next((task for task in plan.tasks if any(step.id == step_id for step in task.steps)), None)
    if first is None:
        raise Invalid(_("There is no such step."), fields={"from_step": _("is not in the plan")})
    tasks, steps = {first.id}, {step_id}
    for _each in plan.tasks:
        tasks |= {task.id for task in plan.tasks if tasks & set(task.depends_on)}
        steps |= {step.id for step in first.steps if steps & set(step.depends_on)}
    steps |= {step.id for task in plan.tasks if task.id in tasks - {first.id} for step in task.steps}
    return {"tasks": tasks, "steps": steps}


def may_steer(run: Run, workspace: Workspace, user: User) -> bool:
    """Whether this person may stop the run and go on with it, with the ``role`` they have in its workspace."""
    return Role(workspace.role).allows(_needed(run, user))


def require_hand(run: Run, by: User) -> None:
    get_workspace(by, run.workspace.public_id, need=_needed(run, by))


def _needed(run: Run, user: User) -> Role:
    """Whoever started it, as long as they may write, and the workspace's owners."""
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


def _fill(run: Run, inputs: Mapping[str, Any]) -> None:
    memory = StoredMemory(run_pk=run.pk)
    seed_inputs(memory, inputs)
    memory.check()


def _checked(wanted: Wanted, tools: Sequence[str]) -> tuple[TaskPlan | None, Limits]:
    wrong: dict[str, str] = {}
    if not wanted.objective.strip():
        wrong["objective"] = _("must not be blank")
    elif len(wanted.objective) > LONGEST_OBJECTIVE:
        wrong["objective"] = _("may have at most %s characters") % f"{LONGEST_OBJECTIVE:,}"
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
    return (None if wanted.plan is None else _read(wanted.plan)), _limits(wanted.budget)


def _why_bad_inputs(inputs: Mapping[str, Any]) -> str:
    if len(inputs) > MOST_INPUTS:
        return _("at most %s are taken") % MOST_INPUTS
    for name, value in inputs.items():
        if not name or len(name) > LONGEST_KEY or "[" in name or "\x00" in name:
            return _("has a name that cannot be used")
        try:
            if len(as_json_text(value)) > LONGEST_VALUE:
                return _("has a value of more than %s characters") % f"{LONGEST_VALUE:,}"
        except (TypeError, ValueError, RecursionError):
            return _("must be JSON")
    return ""


def _read(plan: object) -> TaskPlan:
    try:
        return read_plan(plan)
    except PlanTrouble as trouble:
        raise Invalid(fields={"plan": str(trouble)[:1000]}) from None


def _limits(budget: Mapping[str, int]) -> Limits:
    wrong: dict[str, str] = {}
    for name, value in budget.items():
        highest = getattr(HIGHEST, name, None)
        if highest is None:
            wrong[f"budget.{name[:40]}"] = _("is not a part of the budget")
        elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= highest:
            wrong[f"budget.{name}"] = _("must be from 1 to %s") % f"{highest:,}"
    if wrong:
        raise Invalid(fields=wrong)
    return Limits(**budget)
