"""Progress of a run: workers claim and complete steps, and further steps become ready.

Every change is one transaction that locks the run's row. If a process dies, a step is completed with all effects or not
at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django_q.tasks import async_task
from pydantic import TypeAdapter

from chat.chats.services import notify_done
from chat.models import Chat
from chat.models.runs import Run, RunEvent, RunMode, RunStatus, RunStep, RunStepStatus, RunTask
from chat.runs.budget import Lost, Stopped, StoredBudget, estimate
from chat.runs.events import record_events, record_status
from chat.runs.plan import PLAN_SCHEMA, PlannedStep, PlannedTask, TaskPlan, read_plan
from chat.runs.run_entries import MemoryKind, RunEntries, StoredRunEntries
from chat.runs.scheduling import ParallelTaskExecutor, State
from chat.runs.step import Outcome, Transcript, Unit
from chat.runs.team import BoardTask, TaskBoard, TeamExecutor
from memoryhub.database.queries import PreparedQuery
from memoryhub.llm.metering import Meter, Metered
from memoryhub.stored_messages import kept
from workspaces.model_choice import Chosen
from workspaces.models import User, WebhookEvent
from workspaces.spending.usage_records import Account, Bill, put
from workspaces.webhooks.hooks import emit

STALE = timedelta(seconds=30)  # without a heartbeat, after which a worker is considered dead


def claimable_steps(now: datetime) -> QuerySet[RunStep]:
    """Filter to steps that can be claimed: ready steps, and steps whose worker is dead."""
    return _takeable(now, now - STALE)


def _takeable(now: datetime, stale: datetime) -> QuerySet[RunStep]:
    ready = Q(status=RunStepStatus.READY, not_before__lte=now)
    left = Q(status=RunStepStatus.RUNNING, beat_at__lt=stale)
    return RunStep.objects.filter(ready | left, run__status=RunStatus.RUNNING)


_WAITING = PreparedQuery(
    lambda now, stale: _takeable(now, stale).order_by("user_id").distinct("user_id").only("user_id"),
    now=datetime,
    stale=datetime,
)
_NEXT = PreparedQuery(
    lambda now, stale, user: (
        _takeable(now, stale)
        .filter(user=user)
        .order_by("run__served_at", "pk")
        .select_related("run__user", "run__workspace")
        .select_for_update(of=("self",), skip_locked=True)
    ),
    now=datetime,
    stale=datetime,
    user=int,
)


def has_claimable_steps(*, now: datetime) -> bool:
    return _WAITING.first(now=now, stale=now - STALE) is not None


def claim_next_step(*, now: datetime) -> RunStep | None:
    """Claim and return the next step, with its run, fairly among users. Four small queries."""
    people = [step.user_id for step in _WAITING.all(now=now, stale=now - STALE)]
    if len(people) > 1:
        people = _by_turn(people, now)
    for person in people:
        with transaction.atomic():
            step = _NEXT.first(now=now, stale=now - STALE, user=person)
            if step is not None:
                RunStep.objects.filter(pk=step.pk).update(**mark_claimed(step, now))
                Run.objects.filter(pk=step.run_id).update(served_at=now, progressed_at=now)
                return step
    return None


def mark_claimed(step: RunStep, now: datetime) -> dict[str, object]:
    """Set the fields of a claimed step without saving them. Return them for an ``update()``."""
    values = {
        "status": RunStepStatus.RUNNING,
        "beat_at": now,
        "lease": step.lease + 1,
        "attempts": step.attempts + 1,
        "started_at": step.started_at or now,
    }
    for name, value in values.items():
        setattr(step, name, value)
    return values


def _by_turn(people: list[int], now: datetime) -> list[int]:
    """Sort users: those with the fewest running steps first, then those whose runs have waited longest."""
    running = RunStep.objects.filter(user__in=people, status=RunStepStatus.RUNNING, beat_at__gte=now - STALE)
    busy = dict(running.order_by().values_list("user").annotate(Count("pk")))
    runs = Run.objects.filter(user__in=people)
    served = dict(runs.order_by().values_list("user").annotate(Max("served_at")))
    return sorted(people, key=lambda person: (busy.get(person, 0), served[person]))


class ClaimedStep:
    """A step that this worker has claimed, with usage, memory entries and events that its next heartbeat stores."""

    def __init__(self, step: RunStep) -> None:
        self.step, self.run = step, step.run
        self.budget = StoredBudget.of(self.run, timezone.now)
        self.memory = StoredRunEntries(run_pk=self.run.pk)
        self.log = Transcript.from_json(dict(step.transcript))
        self.log.save = self.save
        self.happened = list[RunEvent]()
        self.meter = Meter()  # usage of the replies, charged to ``account`` once it is known
        self.account: Account | None = None
        self._mine = RunStep.objects.filter(pk=step.pk, lease=step.lease, status=RunStepStatus.RUNNING)

    def record(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(run_id=self.run.pk, step=self.step.ref, kind=kind, data=data, at=timezone.now())
        self.happened.append(event)

    def save(self) -> None:
        """Store the transcript and the usage."""
        self.beat(transcript=self.log.as_json(), rounds=self.log.rounds, attempts=0)

    def beat(self, **values: Any) -> None:
        """Store a heartbeat, the step's fields in ``values``, and the collected memory entries and events.

        Raises Lost if another worker has claimed the step, and Stopped if the run is stopped.
        """
        with transaction.atomic():
            # Lock the run's row before the step's, as the end of a step does. The ledger's row comes last.
            total, bill = self.taken() if values else (None, None)  # otherwise a reply is still in progress
            status = self.budget.keep(bill)
            self._change(beat_at=timezone.now(), **values)
            self.memory.keep()
            record_events(self.run, self.happened)
            self.count(bill)
        self.happened.clear()
        if total is not None:
            self.meter.forget(total)
        if status != RunStatus.RUNNING:
            raise Stopped

    def taken(self) -> tuple[Metered, Bill | None]:
        """Return the usage not stored yet, to pass to ``meter.forget`` after the commit, and its bill, if any."""
        total = self.meter.total()
        return total, self.account.bill(total) if self.account else None

    def count(self, bill: Bill | None) -> None:
        """Add the bill to the ledger. Call it last in a transaction, as it locks a row that other requests need."""
        if self.account is not None and bill is not None:
            put(self.account, bill, timezone.now())

    def end(self, run: Run, bill: Bill | None, **values: Any) -> None:
        """Store the end of the step, and add its usage to the locked ``run``, which the caller saves. Raises Lost."""
        self._change(**values, rounds=self.log.rounds, transcript={})  # tool results are no longer needed
        self.budget.count_in(run, bill)

    def put_back(self, *, now: datetime, **values: Any) -> None:
        self._mine.update(status=RunStepStatus.READY, beat_at=None, **{"not_before": now} | values)

    def _change(self, **values: Any) -> None:
        if not self._mine.update(**values):
            raise Lost


WHOLE, PLAN = kept("The whole objective"), kept("Plan")  # default titles
PLANNING = ":plan"  # ref of the planning step, which is no valid id in a plan
TICKET_SECONDS = 600  # timeout of a job, including the longest reply of a model
COUNTED = ("rounds", "tokens_in", "tokens_out", "cost")
MADE_PRIVATE = kept("The chat it belongs to was made private.")
ACCOUNT_CLOSED = kept("The account of the person who started it was closed.")
EXPECTED = ("expected_tokens", "expected_cost")
_UNIT = TypeAdapter(Unit)
_RUN = PreparedQuery(
    lambda run: Run.objects.order_by().select_for_update(of=("self",)).filter(pk=run),
    run=int,
)


@contextmanager
def locked_run(run_pk: int) -> Iterator[Run]:
    """Lock the run's row and yield the run. Raises Lost if the run was deleted."""
    with transaction.atomic():
        run = next(iter(_RUN.all(run=run_pk)), None)
        if run is None:
            raise Lost
        yield run


def begin(run: Run, plan: TaskPlan | None, chosen: Chosen, *, now: datetime) -> None:
    """Create the first steps of a new run, in its transaction: those of ``plan``, or a step that makes a plan."""
    if plan is None and run.mode == RunMode.LOOP:
        plan = TaskPlan((PlannedTask("work", WHOLE, steps=(PlannedStep("work", run.objective),)),))
    if plan is None:
        estimate(run, chosen=chosen)
        run.save(update_fields=EXPECTED)
        planning = PlannedStep(PLANNING, run.objective, schema=PLAN_SCHEMA)
        inputs = run.entries.filter(kind=MemoryKind.INPUT).values_list("key", flat=True)
        _add(run, [Unit(planning, "", PLAN, tuple(inputs))], now=now)
        enqueue_worker()
    else:
        _begin_or_wait(run, plan, chosen, now=now)


def complete_step(held: ClaimedStep, outcome: Outcome, *, now: datetime) -> RunStep | None:
    """Store the outcome of a step, and make the steps that depend on it ready.

    Return the next step of this run, claimed for the caller, or None if there is none or if another run waits for a
    worker. Raises Lost if another worker has claimed the step, and Stopped if it succeeded but the run was stopped.
    """
    step = held.step
    with locked_run(step.run_id) as run:
        if outcome.ok and run.status != RunStatus.RUNNING:
            raise Stopped
        run.user, run.workspace = held.run.user, held.run.workspace
        status = RunStepStatus.DONE if outcome.ok or outcome.released else RunStepStatus.FAILED
        total, bill = held.taken()
        held.end(run, bill, status=status, error=(outcome.error or outcome.released)[:300], finished_at=now)
        held.record("step", {"status": status})
        record_events(run, held.happened)
        if step.ref != PLANNING:
            executor = _executor_with(read_plan(run.plan), run, held.memory)
            executor.finish(unit_of(step), outcome)
            following = advance_run(run, executor, now=now, takes_next=True)
        else:
            held.memory.keep()
            run.save(update_fields=COUNTED)
            following = None
            if outcome.ok:
                _begin_or_wait(run, read_plan(outcome.value), now=now)
            else:
                _end(run, RunStatus.FAILED, outcome.error, now=now)
        held.count(bill)
    held.meter.forget(total)
    return following


def _begin_or_wait(run: Run, plan: TaskPlan, chosen: Chosen | None = None, *, now: datetime) -> None:
    take_plan(run, plan, chosen)
    if run.reviews_plan:
        run.status = RunStatus.WAITING
        run.save(update_fields=["plan", "board", "status"])
        record_status(run, now=now)
    else:
        advance_run(run, _executor_with(plan, run), now=now)


def take_plan(run: Run, plan: TaskPlan, chosen: Chosen | None = None) -> None:
    """Replace the run's plan and reset its progress. Call it within ``locked_run``."""
    run.plan = plan.as_json()
    run.states = {"steps": {}, "tasks": {}}
    run.board = TaskBoard.of(plan).as_json() if run.mode == RunMode.TEAM else None
    estimate(run, plan, chosen=chosen)
    run.save(update_fields=["plan", "board", "states", *EXPECTED])
    run.tasks.all().delete()
    _show_tasks(run, plan)


def advance_run(
    run: Run,
    executor: ParallelTaskExecutor | TeamExecutor | None = None,
    *,
    now: datetime,
    takes_next: bool = False,
) -> RunStep | None:
    """Make the steps ready that can begin next, or end the run if none is left. Call it within ``locked_run``.

    ``takes_next``: if no other run waits, claim the first ready step for the caller and return it. The others are left
    to a background job.
    """
    executor = executor or _executor_with(read_plan(run.plan), run)
    shown, ready = (run.states.get("tasks"), run.board), executor.ready()
    for unit in ready:
        executor.begin(unit)
    mine = takes_next and bool(ready) and run.status == RunStatus.RUNNING and not has_claimable_steps(now=now)
    added = _add(run, ready, now=now, takes_first=mine)
    if isinstance(executor, TeamExecutor):
        run.board = executor.board.as_json()
    else:
        run.states = {"steps": dict(executor.states), "tasks": dict(executor.task_states)}
    run.progressed_at, run.served_at = now, now if mine else run.served_at
    run.save(update_fields=["states", "board", "progressed_at", "served_at", *COUNTED])
    assert isinstance(executor.memory, StoredRunEntries)
    executor.memory.keep()
    if (run.states.get("tasks"), run.board) != shown:
        _show_tasks(run, executor.plan)
    is_open = run.steps.filter(status__in=[RunStepStatus.READY, RunStepStatus.RUNNING])
    if executor.is_over and not is_open.exists():
        if executor.ok:
            _end(run, RunStatus.DONE, "", now=now)
        else:
            _end(run, RunStatus.FAILED, _first_error(run), now=now)
    elif not takes_next or len(ready) > 1:
        enqueue_worker()
    return added[0] if mine else None


def stop(run: Run, why: str, *, now: datetime) -> None:
    """Stop the run, within ``locked_run``. Its running steps end within seconds, and their work is stored.

    ``why`` is empty if a person stopped the run; otherwise its user is notified.
    """
    run.status, run.error = RunStatus.STOPPED, why[:300]
    run.save(update_fields=["status", "error"])
    record_status(run, now=now)
    if why:
        _notify(run, now)


def stop_with_reason(run_pk: int, why: str, *, now: datetime) -> None:
    """Stop the run with a reason in English. Does nothing if the run is over, stopped or deleted."""
    with suppress(Lost), locked_run(run_pk) as run:
        if run.status in (RunStatus.RUNNING, RunStatus.WAITING):
            stop(run, why, now=now)


def stop_runs_of(user: User, now: datetime) -> None:
    """Stop all runs of a person whose account is closed."""
    theirs = Run.objects.filter(user=user, status__in=[RunStatus.RUNNING, RunStatus.WAITING])
    for run in theirs.order_by("pk").values_list("pk", flat=True):
        stop_with_reason(run, ACCOUNT_CLOSED, now=now)


def stop_runs_of_others(sender: type[Chat], *, chat: Chat, now: datetime, **kwargs: object) -> None:
    """Stop the runs of a chat that was made private, except those of its creator."""
    theirs = chat.runs.filter(status__in=[RunStatus.RUNNING, RunStatus.WAITING]).exclude(user=chat.created_by)
    for run in theirs.order_by("pk").values_list("pk", flat=True):
        stop_with_reason(run, MADE_PRIVATE, now=now)


def _executor_with(
    plan: TaskPlan, run: Run, memory: RunEntries | None = None
) -> ParallelTaskExecutor | TeamExecutor:
    """Return the executor of the run's plan, with its current state from the run's row and ``memory``."""
    memory = StoredRunEntries(run_pk=run.pk) if memory is None else memory
    if run.board is not None:
        return TeamExecutor(plan, memory, board=TaskBoard.from_json(run.board))
    steps, tasks = (
        {name: State(state) for name, state in run.states[what].items()} for what in ("steps", "tasks")
    )
    return ParallelTaskExecutor(plan, memory, states=steps, task_states=tasks)


def unit_of(step: RunStep) -> Unit:
    return _UNIT.validate_python(step.unit)


def _add(run: Run, units: Sequence[Unit], *, now: datetime, takes_first: bool = False) -> list[RunStep]:
    common = {"run": run, "user_id": run.user_id, "not_before": now}
    steps = [RunStep(ref=unit.step.id, task=unit.task_id, unit=asdict(unit), **common) for unit in units]
    if takes_first:
        mark_claimed(steps[0], now)
    return RunStep.objects.bulk_create(steps)


def _first_error(run: Run) -> str:
    failed = run.steps.filter(status=RunStepStatus.FAILED).exclude(error="").first()
    return failed.error if failed else kept("None of the remaining tasks could be continued.")


def _end(run: Run, status: str, error: str, *, now: datetime) -> None:
    run.status, run.error, run.finished_at = status, error[:300], now
    run.save(update_fields=["status", "error", "finished_at"])
    record_status(run, now=now)
    _notify(run, now)
    if not run.is_private:
        emit(run.workspace_id, WebhookEvent.RUN_FINISHED, [run.public_id], action=status)


def _notify(run: Run, now: datetime) -> None:
    """Notify the user that the run has ended. For research in a chat, the answer sends the notification instead."""
    if run.answer_id is None:
        url = reverse("chat:run", args=[run.workspace.public_id, run.public_id])
        notify_done(run.user, "run", url, took=(now - run.created_at).total_seconds())


def _show_tasks(run: Run, plan: TaskPlan) -> None:
    """Update the rows of tasks, which pages show, from the plan or the team's board."""
    shown: list[tuple[BoardTask | PlannedTask, dict[str, str]]]
    if run.board is not None:
        board = TaskBoard.from_json(run.board).tasks.values()
        shown = [(task, {"status": task.state, "member": task.member}) for task in board]
    else:
        states = run.states.get("tasks", {})
        shown = [(task, {"status": states.get(task.id, "waiting")}) for task in plan.tasks]
    known = {task.ref: task for task in run.tasks.all()}
    for position, (task, standing) in enumerate(shown):
        values = {"title": task.title, "depends_on": [*task.depends_on], **standing}
        row = known.get(task.id)
        if row is None:
            RunTask.objects.create(run=run, ref=task.id, position=position, **values)
        elif any(getattr(row, name) != value for name, value in values.items()):
            run.tasks.filter(pk=row.pk).update(**values)


def enqueue_worker() -> None:
    """Queue a job that runs ready steps. The jobs are identical, and a superfluous one does nothing."""
    job = {"task_name": "runs", "timeout": TICKET_SECONDS}
    transaction.on_commit(lambda: async_task("chat.tasks.work_on_runs", **job))
