"""A plan that waits for a person, as the page of its run and its chat show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from chat.models import Chat, Message
from chat.models.runs import Run, RunStatus
from chat.modes.registry import get_mode
from chat.runs import plan
from chat.runs.services import may_steer
from workspaces.models import User


@dataclass(frozen=True)
class ShownPlan:
    """``focus``: the id of the task that has just been moved or put up. ``can_steer``: the reader may change it."""

    run: Run
    tasks: Sequence[plan.ShownTask]
    can_steer: bool
    focus: str = ""


def planned(
    run: Run, *, can_steer: bool, rows: Sequence[plan.Row] | None = None, focus: str = ""
) -> ShownPlan | None:
    """None where no plan waits. ``rows``: as a form has them, with what is not in the plan yet."""
    if run.status != RunStatus.WAITING or run.plan is None:
        return None
    rows = plan.rows_of(run.plan) if rows is None else rows
    return ShownPlan(run, plan.shown(run.plan, rows), can_steer, focus)


def plan_of_answer(answer: Message, chat: Chat, user: User) -> ShownPlan | None:
    """Return the waiting plan of a chat's last answer. One query, and none if its mode has no plan."""
    if not get_mode(answer.mode).may_wait:
        return None
    run = Run.objects.visible_to(user).filter(answer=answer).select_related("user").first()
    return None if run is None else planned(run, can_steer=may_steer(run, chat.role, user))


def plan_in(run: Run, posted: QueryDict) -> dict[str, Any] | None:
    """The plan as a form has it; None without one."""
    rows = rows_in(posted)
    return plan.edited(run.plan, rows) if rows and run.plan and run.status == RunStatus.WAITING else None


def rows_in(posted: QueryDict) -> list[plan.Row]:
    return plan.rows_in(posted.getlist("id"), posted.getlist("text"))
