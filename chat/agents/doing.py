"""Doing one step that a worker has taken up, with a sign of life every two seconds, and what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.agents.asking import asking
from chat.agents.course import PLANNING, settle, unit_of
from chat.agents.plan import PlanTrouble, read_plan
from chat.agents.run_tools import board_of, caller_of, tools_of_run
from chat.agents.step import Ask, Outcome, Reply, StepContext, StepExecutor, Transcript
from chat.agents.stored_run import Lost, Stopped, StoredBudget, StoredMemory, note, note_all
from chat.agents.team import MEMBERS, context_of_member
from chat.agents.units import Unit
from chat.models.runs import Run, RunEvent, RunMode, RunStatus, RunStep, RunStepStatus
from chat.prompting.context import room_beside_answer
from chat.prompting.text import prompt_text
from memoryhub.errors import DomainError
from memoryhub.llm.base import ChatModel, Message, Tool
from memoryhub.llm.errors import ModelError
from workspaces.connections.choice import chosen_for

logger = logging.getLogger(__name__)
MOST_ATTEMPTS = 5
RETRY_AFTER = timedelta(seconds=5)  # doubled with each attempt; a model that asks for more is given it


class Yielded(Exception):
    """The worker's time for this job is up; another goes on."""


class Held:
    """A step in this process's hands. Everything it writes it writes only as long as that is so.

    What it spends and what happens in it is kept with its next sign of life, in one transaction.
    """

    def __init__(self, step: RunStep, run: Run) -> None:
        self.step, self.run = step, run
        self.budget = StoredBudget.of(run, timezone.now)
        self._happened = list[RunEvent]()
        self._mine = RunStep.objects.filter(pk=step.pk, lease=step.lease, status=RunStepStatus.RUNNING)

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(run_id=self.run.pk, step=self.step.ref, kind=kind, data=data, at=timezone.now())
        self._happened.append(event)

    def beat(self, **values: Any) -> None:
        happened, self._happened = self._happened, []
        with transaction.atomic():
            status = (
                self.budget.keep()
            )  # first: whoever settles a step locks the run's row before the step's, too
            is_mine = self._mine.update(beat_at=timezone.now(), **values)
            if is_mine:
                note_all(self.run, happened)
        if not is_mine:
            raise Lost
        if status != RunStatus.RUNNING:
            raise Stopped

    def require(self) -> None:
        """Raises Lost where the step is another's by now; no other can take it before this transaction ends."""
        if not self._mine.select_for_update(of=("self",), no_key=True).exists():
            raise Lost

    def put_back(self, *, now: datetime, **values: Any) -> None:
        self._mine.update(status=RunStepStatus.READY, beat_at=None, **{"not_before": now} | values)


def do(step: RunStep, *, ends: float) -> None:
    """One step, just taken, to its end, or as far as it comes until ``ends`` on the clock. Never raises."""
    run = step.run
    held = Held(step, run)
    try:
        outcome = _work(held, ends)
        if outcome.spent:
            held.put_back(now=timezone.now())
            _halt(run, outcome.error)
        else:
            settle(step, outcome, now=timezone.now())
    except Lost:
        logger.info("A step was taken over by another worker")
    except (Stopped, Yielded):
        held.put_back(now=timezone.now(), attempts=0)
    except ModelError as error:
        _model_failed(held, error)
    except (DatabaseError, InterfaceError):
        logger.warning("The database is away; a step goes on from where it was kept")
    except DomainError as error:  # the person may do nothing here any more
        _settle_failed(step, error.message)
    except Exception:
        logger.exception("A step failed")
        _settle_failed(step, _("Something went wrong here."))


def _work(held: Held, ends: float) -> Outcome:
    step, run = held.step, held.run
    unit = unit_of(step)
    if step.attempts > MOST_ATTEMPTS:
        return Outcome(False, error=_("It was interrupted several times in the same place."))
    chosen = chosen_for(run.workspace, run.user, first=run.connection)
    model = chosen.ask()
    if not model.capabilities.has_tools:
        return Outcome(False, error=_("The model in use cannot call tools."))
    caller_of(run, is_local=model.capabilities.local)
    memory = StoredMemory(run_pk=run.pk, may_write=held.require)
    log = Transcript.from_json(dict(step.transcript))

    def save() -> None:
        memory.check()
        held.beat(transcript=log.as_json(), rounds=log.rounds, attempts=0)

    log.save = save
    executor = StepExecutor(
        unit.step,
        _context(held, unit, model, memory, ends),
        upstream=unit.upstream,
        task_id=unit.task_id,
        task_title=unit.task_title,
        finishes_task=unit.finishes_task,
        transcript=log,
        check=_why_no_plan if step.ref == PLANNING else lambda result: "",
    )
    outcome = executor.execute()
    memory.check()
    return outcome


def _context(held: Held, unit: Unit, model: ChatModel, memory: StoredMemory, ends: float) -> StepContext:
    run = held.run
    context = StepContext(
        memory,
        _until(ends, asking(model, held.beat)),
        tools=tools_of_run(run, is_local=model.capabilities.local),
        preamble=_preamble(run, unit),
        budget=held.budget,
        room=room_beside_answer(model.capabilities),
        emit=held.tell,
    )
    if run.mode == RunMode.TEAM and unit.member:
        members = read_plan(run.plan).members or MEMBERS
        me = next(member for member in members if member.name == unit.member)
        context = context_of_member(me, context, members, board_of(run))
    return context


def _preamble(run: Run, unit: Unit) -> str:
    if unit.id == PLANNING:
        return prompt_text("run_plan")
    return prompt_text("run_research") if run.mode == RunMode.RESEARCH else ""


def _until(ends: float, ask: Ask) -> Ask:
    def asked(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        if time.monotonic() > ends:
            raise Yielded
        return ask(messages, tools, may_call=may_call)

    return asked


def _why_no_plan(result: Any) -> str:
    try:
        read_plan(result)
    except PlanTrouble as trouble:
        return str(trouble)
    return ""


def _model_failed(held: Held, error: ModelError) -> None:
    """Tried again after a while where that may help, else the step has failed."""
    step = held.step
    logger.warning("The model failed in a run: %s", error.for_log)
    if error.retryable and step.attempts < MOST_ATTEMPTS:
        wait = max(
            RETRY_AFTER * 2 ** (step.attempts - 1), timedelta(seconds=min(error.retry_after or 0, 600))
        )
        held.put_back(now=timezone.now() + wait, error=str(error)[:300])
        return
    _settle_failed(step, str(error))


def _settle_failed(step: RunStep, why: str) -> None:
    try:
        settle(step, Outcome(False, error=why), now=timezone.now())
    except Lost:
        logger.info("A failed step was taken over by another worker")


def _halt(run: Run, why: str) -> None:
    """Until the person gives it more, or leaves it at that."""
    now = timezone.now()
    running = Run.objects.filter(pk=run.pk, status=RunStatus.RUNNING)
    if running.update(status=RunStatus.STOPPED, error=why[:300]):
        note(run, "run", {"status": RunStatus.STOPPED}, now=now)
