"""Starting runs, stopping them and going on with them: what every door calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from chat.agents.plan import TaskPlan
from chat.agents.run_progress import EXPECTED, PLANNING, alone, begin, go_on, hurry, stop, take_plan
from chat.agents.run_request import RunRequest, checked, given_limits, given_plan
from chat.agents.run_tools import offered, usual
from chat.agents.stored_run import Lost, StoredMemory, limits_of, note
from chat.agents.task import seed_inputs
from chat.models import Chat
from chat.models.runs import Run, RunMode, RunStatus
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace, lock_to_count, require
from workspaces.connections import Chosen, chosen_for
from workspaces.models import Role, User, Workspace
from workspaces.quotas import spend
from workspaces.spending.bill import rate_of
from workspaces.spending.budgets import require_budget

MOST_ACTIVE = 50  # runs of one person that are not over


def why_not(chosen: Chosen) -> str:
    """Why no run can be started with this model, in a sentence; empty where one can."""
    if chosen.trouble is not None:
        return str(chosen.trouble)
    if not chosen.model.capabilities.has_tools:
        return _(
            "Runs need a model that can call tools, and “%(name)s” cannot. Connect a larger one, "
            "or ask your administrator to."
        ) % {"name": chosen.label}
    return ""


def start_run(workspace: Workspace, wanted: RunRequest, *, by: User, now: datetime) -> Run:
    """Store a run and queue its first step. Raises Invalid naming every field that is wrong, also where the model
    cannot do it; Forbidden for viewers; Conflict for too many at once; TooManyRequests; BudgetReached.
    """
    require(workspace.role, Role.EDITOR)
    chosen = chosen_for(workspace, by)
    if why := why_not(chosen):
        raise Invalid(why, code="model_cannot")
    plan, limits = checked(wanted, offered(workspace))
    _refuse_too_many(by)
    require_budget(workspace.pk, by.pk, lambda: rate_of(chosen), now=now)
    spend("turns", by, now=now)  # the dearest thing that a person can ask for
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
            tools=list(usual(workspace) if wanted.tools is None else dict.fromkeys(wanted.tools)),
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
    """As it is now, and until the run is stored: who makes the chat private then finds it."""
    return None if chat_id is None else Chat.objects.select_for_update(no_key=True).get(pk=chat_id)


def get_run(user: User, workspace: Workspace, public_id: str) -> Run:
    rows = Run.objects.visible_to(user).filter(workspace=workspace, public_id=public_id)
    run = rows.select_related("user", "answer__chat").first()
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
        stop(locked, "", now=now)
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
        note(locked, "run", {"status": locked.status}, now=now)
        if locked.plan is None:  # its planning goes on
            hurry()
        else:
            go_on(locked, now=now)
    return locked


def revise_plan(run: Run, plan: object, *, by: User) -> Run:
    """The plan that waits, as somebody has changed it, or as it is. Raises Conflict where it does not wait, Invalid."""
    require_hand(run, by)
    with _locked(run) as locked:
        if locked.status != RunStatus.WAITING:
            raise Conflict(_("This plan does not wait for anybody any more."))
        if plan is not None:
            _change_plan(locked, given_plan(plan))
    return locked


def may_steer(run: Run, role: str, user: User) -> bool:
    """Whether this person may stop the run and go on with it, with this role in its workspace."""
    return Role(role).allows(_needed(run, user))


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


def _fill(run: Run, wanted: RunRequest) -> None:
    memory = StoredMemory(run_pk=run.pk, waits=True)
    memory.restore(wanted.memory)
    seed_inputs(memory, wanted.inputs)
    memory.keep()
