"""Workers of runs: claim a step, call the model, send a heartbeat every two seconds, and store the outcome.

All queued jobs are identical: each looks in the database for steps that are ready. There are fewer slots than queue
workers, so that other jobs do not wait for a model.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotYet
from contextlib import aclosing, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models.runs import RunMode, RunStep
from chat.prompting.context import prompt_token_limit
from chat.prompting.prompt_text import prompt_text
from chat.runs.budget import Lost, Stopped
from chat.runs.plan import PlanTrouble, read_plan
from chat.runs.step import Ask, Outcome, Reply, StepContext, StepExecutor, Unit
from chat.runs.team import MEMBERS, context_of_member
from chat.runs.transitions import (
    PLANNING,
    ClaimedStep,
    claim_next_step,
    claimable_steps,
    complete_step,
    enqueue_worker,
    stop_with_reason,
    unit_of,
)
from chat.runs.workspace_tools import board_of, tools_of_run
from chat.tools.loop import replied
from memoryhub.database.queries import alone
from memoryhub.errors import DomainError
from memoryhub.llm.base import Capabilities, ChatModel, Message, Tool, ToolCall
from memoryhub.llm.errors import ModelError, ModelTimeout
from memoryhub.llm.http_clients import BackgroundLoop
from memoryhub.llm.metering import Meter, metered
from workspaces.access import get_workspace
from workspaces.model_choice import chosen_for
from workspaces.models import Purpose, Role
from workspaces.spending.budgets import BudgetReached, require_budget
from workspaces.spending.usage_records import Account, rate_of

REPLY_SECONDS = 300.0  # timeout of one model reply
BEAT_SECONDS = 2.0
_loop = BackgroundLoop("runs")


def asking(model: ChatModel, beat: Callable[[], None] = lambda: None, meter: Meter | None = None) -> Ask:
    """Return a function that calls the model and waits for its reply.

    While it waits, it calls ``beat`` every two seconds; an exception in ``beat`` cancels the request. ``meter``
    receives the usage of each reply.
    """

    def ask(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        with metered(meter) if meter else nullcontext():
            future = _loop.submit(_reply(model, messages, tools, may_call=may_call))
        try:
            while True:
                try:
                    return future.result(BEAT_SECONDS)
                except NotYet:
                    if future.done():
                        raise
                    beat()
        finally:
            future.cancel()

    return ask


async def _reply(
    model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool
) -> Reply:
    text, calls = "", tuple[ToolCall, ...]()
    try:
        async with (
            asyncio.timeout(REPLY_SECONDS),
            aclosing(replied(model, messages, tools=tools, may_call=may_call)) as deltas,
        ):
            async for delta in deltas:
                text = delta.text if delta.retracts else text + delta.text
                calls = delta.tool_calls or calls
    except TimeoutError:
        raise ModelTimeout from None
    return Reply(text, calls)


logger = logging.getLogger(__name__)
MOST_ATTEMPTS = 5
RETRY_AFTER = timedelta(seconds=5)  # doubled with each attempt, or longer if the provider says so


class Yielded(Exception):
    """Raised in a step when the job's time is used up. The step is stored, and another job continues it."""


def do(step: RunStep, *, ends: float) -> RunStep | None:
    """Run a claimed step to its end, or until the monotonic time ``ends``. Return the next step if it is claimed for
    this worker already, else None. Errors of the step are stored, not raised.
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
            return complete_step(held, outcome, now=timezone.now())
        held.put_back(now=timezone.now())
        stop_with_reason(held.run.pk, outcome.error, now=timezone.now())
    except Lost:
        logger.info("A step was taken over by another worker")
    except (Stopped, Yielded):
        _release(held)
    except ModelError as error:
        return _retry_or_fail(held, error)
    except (OperationalError, InterfaceError):
        logger.warning("The database is away; a step goes on from where it was kept")
    except BudgetReached as error:  # the run can be resumed when the budget is raised or the month is over
        held.put_back(now=timezone.now(), attempts=0)
        stop_with_reason(held.run.pk, error.for_all, now=timezone.now())
    except DomainError as error:  # the person has lost access
        return _complete_failed(held, error.message)
    except Exception:
        logger.exception("A step failed")
        return _complete_failed(held, _("Something went wrong here."))
    return None


def _work(held: ClaimedStep, ends: float) -> Outcome:
    step, run = held.step, held.run
    unit = unit_of(step)
    if step.attempts > MOST_ATTEMPTS:
        return Outcome(False, error=_("It was interrupted several times in the same place."))
    # With the user's current permissions.
    run.workspace = get_workspace(run.user, run.workspace.public_id, need=Role.EDITOR)
    chosen = chosen_for(run.workspace, run.user, first=run.connection)
    model = chosen.ask()
    held.account = account = Account(run.workspace_id, run.user_id, Purpose.RUN, rate_of(chosen))
    if not model.capabilities.has_tools:
        return Outcome(False, error=_("The model in use cannot call tools."))
    return StepExecutor(
        unit,
        _context(held, unit, _until(ends, asking(model, held.beat, held.meter), account), model.capabilities),
        transcript=held.log,
        check=_why_no_plan if step.ref == PLANNING else lambda result: "",
    ).execute()


def _context(held: ClaimedStep, unit: Unit, ask: Ask, able: Capabilities) -> StepContext:
    run = held.run
    preamble = prompt_text("run_research") if run.mode == RunMode.RESEARCH else ""
    if unit.step.id == PLANNING:
        preamble = prompt_text("run_plan")
    context = StepContext(
        held.memory,
        ask,
        tools=tools_of_run(run, is_local=able.local),
        preamble=preamble,
        budget=held.budget,
        room=prompt_token_limit(able),
        emit=held.record,
    )
    if unit.member:
        members = read_plan(run.plan).members or MEMBERS
        me = next(member for member in members if member.name == unit.member)
        context = context_of_member(me, context, members, board_of(run))
    return context


def _until(ends: float, ask: Ask, account: Account) -> Ask:
    """Return a function that calls ``ask``, but first raises Yielded after the time ``ends``, or BudgetReached.

    The usage of earlier replies is in the ledger by then, so the budget check includes it.
    """

    def limited_ask(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        if time.monotonic() > ends:
            raise Yielded
        require_budget(account.workspace_id, account.user_id, lambda: account.rate, now=timezone.now())
        return ask(messages, tools, may_call=may_call)

    return limited_ask


def _why_no_plan(result: object) -> str:
    try:
        read_plan(result)
    except PlanTrouble as trouble:
        return str(trouble)
    return ""


def _count_rest(held: ClaimedStep) -> None:
    """Add to the ledger the usage of a reply that could not be stored with the step."""
    try:
        held.count(held.taken()[1])
    except (DatabaseError, InterfaceError):
        logger.warning("What a step took could not be written down: the database is away")


def _release(held: ClaimedStep) -> None:
    """Store the step, including the model's last reply, and make it ready for another worker."""
    if held.happened:
        with suppress(Stopped, Lost):
            held.save()
    held.put_back(now=timezone.now(), attempts=0)


def _retry_or_fail(held: ClaimedStep, error: ModelError) -> RunStep | None:
    """Put the step back for a later attempt if the error is retryable, else fail it."""
    step = held.step
    logger.warning("The model failed in a run: %s", error.for_log)
    if error.retryable and step.attempts < MOST_ATTEMPTS:
        wait = max(
            RETRY_AFTER * 2 ** (step.attempts - 1), timedelta(seconds=min(error.retry_after or 0, 600))
        )
        held.put_back(now=timezone.now() + wait, error=str(error)[:300])
        return None
    return _complete_failed(held, str(error))


def _complete_failed(held: ClaimedStep, why: str) -> RunStep | None:
    try:
        return complete_step(held, Outcome(False, error=why), now=timezone.now())
    except Lost:
        logger.info("A failed step was taken over by another worker")
        return None


AT_ONCE = 4  # concurrent steps per job, since they mostly wait for the model
AGAIN = 1.0  # seconds after which an ended thread is replaced while others still work
PAUSE = 0.1  # seconds between checks whether a running step has made another one ready


def work(*, seconds: float, at_once: int = AT_ONCE) -> int:
    """Run ready steps for up to ``seconds``, if a slot is free, and ``at_once`` at a time. Return their number."""
    ends, done = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        with _slot() as free:
            if not free:
                return done
            done += _take_steps(ends, at_once)
        # A step that became ready while the slot was being released found every slot taken.
        if not claimable_steps(timezone.now()).exists():
            return done
    enqueue_worker()
    return done


def sweep(*, now: datetime) -> None:
    """Queue a job if there are claimable steps, as after a lost job, a dead worker or a delayed retry."""
    if claimable_steps(now).exists():
        enqueue_worker()


def _take_steps(ends: float, at_once: int) -> int:
    if at_once == 1:
        return _one_after_another(ends, set())
    busy, counts, threads = set[int](), list[int](), list[threading.Thread]()

    def begin() -> None:
        threads.append(
            threading.Thread(target=lambda: counts.append(_in_thread(ends, busy)), name="step", daemon=True)
        )
        threads[-1].start()

    for _number in range(at_once):
        begin()
    while alive := [each for each in threads if each.is_alive()]:
        alive[0].join(AGAIN)
        # Another thread has ended, because the database was unavailable or no step was ready yet.
        if alive[0].is_alive() and len(alive) < at_once:
            begin()
    return sum(counts)


def _in_thread(ends: float, busy: set[int]) -> int:
    try:
        return _one_after_another(ends, busy)
    except (DatabaseError, InterfaceError):
        logger.warning("The database is away; what a lane was doing goes on from where it was kept")
        return 0
    finally:
        connection.close()


def _one_after_another(ends: float, busy: set[int]) -> int:
    """Run steps and return their number. Stop at the time ``ends``, or when no step is ready and no other thread of
    this job runs one that may make another ready. ``busy`` holds the ids of the threads that run a step.
    """
    done, me, step = 0, threading.get_ident(), None
    while step or time.monotonic() < ends:
        busy.add(me)  # before the query, since a step about to be taken may lead to another
        try:
            if step := step or claim_next_step(now=timezone.now()):
                step = do(step, ends=ends)
                done += 1
                continue
        finally:
            busy.discard(me)
        if not busy:
            return done
        time.sleep(PAUSE)
    return done


@contextmanager
def _slot() -> Iterator[bool]:
    """Hold a free slot for a worker, until it ends or is killed. Yields whether there was one."""
    for lane in range(max(1, settings.WORKERS - 1)):
        with alone("chat.runs", lane) as is_free:
            if is_free:
                yield True
                return
    yield False
