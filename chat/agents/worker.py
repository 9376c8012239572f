"""Doing one step that a worker has taken up, with a sign of life every two seconds, and what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.agents.asking import asking
from chat.agents.claimed_step import ClaimedStep
from chat.agents.plan import PlanTrouble, read_plan
from chat.agents.run_progress import PLANNING, halt, settle, unit_of
from chat.agents.run_tools import board_of, tools_of_run
from chat.agents.step import Ask, Outcome, Reply, StepContext, StepExecutor
from chat.agents.stored_run import Lost, Stopped
from chat.agents.team import MEMBERS, context_of_member
from chat.agents.units import Unit
from chat.models.runs import Run, RunMode, RunStep
from chat.prompting.context import room_beside_answer
from chat.prompting.text import prompt_text
from memoryhub.errors import DomainError
from memoryhub.llm.base import Capabilities, Message, Tool
from memoryhub.llm.errors import ModelError
from workspaces.access import get_workspace
from workspaces.connections import chosen_for
from workspaces.models import Purpose, Role
from workspaces.spending.bill import Account, rate_of
from workspaces.spending.budgets import BudgetReached, require_budget

logger = logging.getLogger(__name__)
MOST_ATTEMPTS = 5
RETRY_AFTER = timedelta(seconds=5)  # doubled with each attempt; a model that asks for more is given it


class Yielded(Exception):
    """The worker's time for this job is up; another goes on."""


def do(step: RunStep, *, ends: float) -> RunStep | None:
    """One step, just taken, to its end, or as far as it comes until ``ends`` on the clock. Never raises. Returns the
    next one where that is in the caller's hands by now.
    """
    held = ClaimedStep(step)
    try:
        return _do(held, ends)
    finally:
        _count_rest(held)


def _do(held: ClaimedStep, ends: float) -> RunStep | None:
    try:
        outcome = _work(held, ends)
        if not outcome.spent:
            return settle(held, outcome, now=timezone.now())
        held.put_back(now=timezone.now())
        halt(held.run.pk, outcome.error, now=timezone.now())
    except Lost:
        logger.info("A step was taken over by another worker")
    except (Stopped, Yielded):
        _lay_down(held)
    except ModelError as error:
        return _model_failed(held, error)
    except (OperationalError, InterfaceError):
        logger.warning("The database is away; a step goes on from where it was kept")
    except BudgetReached as error:  # the month's: it goes on when that is raised, or over
        held.put_back(now=timezone.now(), attempts=0)
        halt(held.run.pk, error.for_all, now=timezone.now())
    except DomainError as error:  # the person may do nothing here any more
        return _settle_failed(held, error.message)
    except Exception:
        logger.exception("A step failed")
        return _settle_failed(held, _("Something went wrong here."))
    return None


def _work(held: ClaimedStep, ends: float) -> Outcome:
    step, run = held.step, held.run
    unit = unit_of(step)
    if step.attempts > MOST_ATTEMPTS:
        return Outcome(False, error=_("It was interrupted several times in the same place."))
    run.workspace = get_workspace(run.user, run.workspace.public_id, need=Role.EDITOR)  # as things stand now
    chosen = chosen_for(run.workspace, run.user, first=run.connection)
    model = chosen.ask()
    held.account = account = Account(run.workspace_id, run.user_id, Purpose.RUN, rate_of(chosen))
    if not model.capabilities.has_tools:
        return Outcome(False, error=_("The model in use cannot call tools."))
    return StepExecutor(
        unit.step,
        _context(held, unit, _until(ends, asking(model, held.beat, held.meter), account), model.capabilities),
        upstream=unit.upstream,
        task_id=unit.task_id,
        task_title=unit.task_title,
        finishes_task=unit.finishes_task,
        transcript=held.log,
        check=_why_no_plan if step.ref == PLANNING else lambda result: "",
    ).execute()


def _context(held: ClaimedStep, unit: Unit, ask: Ask, able: Capabilities) -> StepContext:
    run = held.run
    context = StepContext(
        held.memory,
        ask,
        tools=tools_of_run(run, is_local=able.local),
        preamble=_preamble(run, unit),
        budget=held.budget,
        room=room_beside_answer(able),
        emit=held.tell,
    )
    if unit.member:
        members = read_plan(run.plan).members or MEMBERS
        me = next(member for member in members if member.name == unit.member)
        context = context_of_member(me, context, members, board_of(run))
    return context


def _preamble(run: Run, unit: Unit) -> str:
    if unit.id == PLANNING:
        return prompt_text("run_plan")
    return prompt_text("run_research") if run.mode == RunMode.RESEARCH else ""


def _until(ends: float, ask: Ask, account: Account) -> Ask:
    """Before each reply: is there time, and budget? What the earlier ones took is in the ledger by then."""

    def asked(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        if time.monotonic() > ends:
            raise Yielded
        require_budget(account.workspace_id, account.user_id, lambda: account.rate, now=timezone.now())
        return ask(messages, tools, may_call=may_call)

    return asked


def _why_no_plan(result: Any) -> str:
    try:
        read_plan(result)
    except PlanTrouble as trouble:
        return str(trouble)
    return ""


def _count_rest(held: ClaimedStep) -> None:
    """What was spent on a reply that came to nothing."""
    try:
        held.count()
    except (DatabaseError, InterfaceError):
        logger.warning("What a step took could not be written down: the database is away")


def _lay_down(held: ClaimedStep) -> None:
    """For whoever goes on with it, with what the model has said last."""
    if held.happened:
        with suppress(Stopped, Lost):
            held.save()
    held.put_back(now=timezone.now(), attempts=0)


def _model_failed(held: ClaimedStep, error: ModelError) -> RunStep | None:
    """Tried again after a while where that may help, else the step has failed."""
    step = held.step
    logger.warning("The model failed in a run: %s", error.for_log)
    if error.retryable and step.attempts < MOST_ATTEMPTS:
        wait = max(
            RETRY_AFTER * 2 ** (step.attempts - 1), timedelta(seconds=min(error.retry_after or 0, 600))
        )
        held.put_back(now=timezone.now() + wait, error=str(error)[:300])
        return None
    return _settle_failed(held, str(error))


def _settle_failed(held: ClaimedStep, why: str) -> RunStep | None:
    try:
        return settle(held, Outcome(False, error=why), now=timezone.now())
    except Lost:
        logger.info("A failed step was taken over by another worker")
        return None
