"""The course of a run: what becomes of it when a step is over, and which steps can be taken up then.

Every change is made alone, under the lock of the run's row, with what it leads to: a process that dies has either
settled a step with all its consequences, or has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from chat.agents.board import BoardTask, TaskBoard
from chat.agents.estimate import expected_tokens
from chat.agents.plan import PLAN_SCHEMA, PlannedStep, PlannedTask, TaskPlan, read_plan
from chat.agents.plan_tasks import ParallelTaskExecutor
from chat.agents.run_memory import AgentMemory, MemoryKind
from chat.agents.step import Outcome
from chat.agents.stored_run import Lost, StoredMemory, note
from chat.agents.team import TeamExecutor
from chat.agents.units import State, Unit
from chat.models.runs import Run, RunMode, RunStatus, RunStep, RunStepStatus, RunTask
from workspaces.models import WebhookEvent
from workspaces.webhooks.outbox import emit

PLANNING = ":plan"  # the ref of the step that plans; no plan can call one of its own so
TICKET_SECONDS = 600  # of one job, with the longest reply of a model


@contextmanager
def alone(run_pk: int) -> Iterator[Run]:
    """The run's row, locked. Raises Lost where it is gone."""
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).filter(pk=run_pk).first()
        if run is None:
            raise Lost
        yield run


def begin(run: Run, *, now: datetime) -> None:
    """The first steps of a run that was just stored, in its transaction: to plan, or what its plan begins with."""
    if run.plan is None and run.mode == RunMode.LOOP:
        step = PlannedStep("work", run.objective)
        run.plan = TaskPlan((PlannedTask("work", _("The whole objective"), steps=(step,)),)).as_json()
    if run.plan is None:
        run.expected_tokens = expected_tokens(run.workspace_id, run.user, run.mode)
        run.save(update_fields=["expected_tokens"])
        planning = PlannedStep(PLANNING, run.objective, schema=PLAN_SCHEMA)
        inputs = run.entries.filter(kind=MemoryKind.INPUT).values_list("key", flat=True)
        _add(run, [Unit(planning, "", _("Plan"), tuple(inputs))], now=now)
        hurry()
        return
    take_plan(run)
    _begin_or_wait(run, now=now)


def settle(step: RunStep, outcome: Outcome, *, now: datetime) -> None:
    """A step is over. Raises Lost where another process has taken it over meanwhile."""
    with alone(step.run_id) as run:
        mine = RunStep.objects.filter(pk=step.pk, lease=step.lease, status=RunStepStatus.RUNNING)
        ended = {
            "status": RunStepStatus.DONE if outcome.ok or outcome.released else RunStepStatus.FAILED,
            "error": (outcome.error or outcome.released)[:300],
            "finished_at": now,
            "transcript": {},  # it held what tools had found, and is needed no more
        }
        if not mine.update(**ended):
            raise Lost
        note(run, "step", {"status": ended["status"]}, step=step.ref, now=now)
        if step.ref == PLANNING:
            _planned(run, outcome, now=now)
        else:
            executor = executor_of(run, StoredMemory(run_pk=run.pk))
            executor.finish(unit_of(step), outcome)
            go_on(run, executor, now=now, in_lane=True)


def _planned(run: Run, outcome: Outcome, *, now: datetime) -> None:
    if not outcome.ok:
        _end(run, RunStatus.FAILED, outcome.error, now=now)
        return
    run.plan = read_plan(outcome.value).as_json()
    take_plan(run)
    _begin_or_wait(run, now=now)


def _begin_or_wait(run: Run, *, now: datetime) -> None:
    if run.reviews_plan:
        run.status = RunStatus.WAITING
        run.save(update_fields=["plan", "board", "status"])
        note(run, "run", {"status": run.status}, now=now)
    else:
        go_on(run, now=now)


def take_plan(run: Run) -> None:
    """Begin with the plan that the run has now. Within ``alone``."""
    plan = plan_of(run)
    run.states = {"steps": {}, "tasks": {}}
    run.board = TaskBoard.of(plan).as_json() if run.mode == RunMode.TEAM else None
    run.expected_tokens = expected_tokens(run.workspace_id, run.user, run.mode, plan)
    run.save(update_fields=["plan", "board", "states", "expected_tokens"])
    run.tasks.all().delete()
    _show_tasks(run, plan)


def go_on(
    run: Run,
    executor: ParallelTaskExecutor | TeamExecutor | None = None,
    *,
    now: datetime,
    in_lane: bool = False,
) -> None:
    """Put up what can be done next, or end the run where nothing is left. Within ``alone``. ``in_lane``: the caller
    looks for another step right after, so that one alone needs no ticket.
    """
    executor = executor or executor_of(run, StoredMemory(run_pk=run.pk))
    shown, ready = (run.states.get("tasks"), run.board), executor.ready()
    for unit in ready:
        executor.begin(unit)
    _add(run, ready, now=now)
    if isinstance(executor, TeamExecutor):
        run.board = executor.board.as_json()
    else:
        run.states = {"steps": dict(executor.states), "tasks": dict(executor.task_states)}
    run.progressed_at = now
    run.save(update_fields=["states", "board", "progressed_at"])
    memory_of(executor).check()
    if (run.states.get("tasks"), run.board) != shown:
        _show_tasks(run, executor.plan)
    if executor.is_over and not _is_open(run):
        ok = executor.ok if isinstance(executor, TeamExecutor) else _all_done(executor)
        why = "" if ok else _first_error(run)
        _end(run, RunStatus.DONE if ok else RunStatus.FAILED, why, now=now)
    elif not in_lane or len(ready) > 1:
        hurry()


def memory_of(executor: ParallelTaskExecutor | TeamExecutor) -> StoredMemory:
    assert isinstance(executor.memory, StoredMemory)
    return executor.memory


def plan_of(run: Run) -> TaskPlan:
    return read_plan(run.plan)


def executor_of(run: Run, memory: AgentMemory) -> ParallelTaskExecutor | TeamExecutor:
    """As it stands: everything that it knows lies in the run's row and in its memory."""
    plan = plan_of(run)
    if run.mode == RunMode.TEAM:
        return TeamExecutor(plan, memory, board=TaskBoard.from_json(run.board))
    steps, tasks = (
        {name: State(state) for name, state in run.states[what].items()} for what in ("steps", "tasks")
    )
    return ParallelTaskExecutor(plan, memory, states=steps, task_states=tasks)


def unit_of(step: RunStep) -> Unit:
    given = dict(step.unit)
    planned = given.pop("step")
    planned["depends_on"] = tuple(planned["depends_on"])
    return Unit(PlannedStep(**planned), **given | {"upstream": tuple(given["upstream"])})


def _add(run: Run, units: Sequence[Unit], *, now: datetime) -> None:
    RunStep.objects.bulk_create(
        RunStep(
            run=run, user_id=run.user_id, ref=unit.id, task=unit.task_id, unit=asdict(unit), not_before=now
        )
        for unit in units
    )


def _is_open(run: Run) -> bool:
    return run.steps.filter(status__in=[RunStepStatus.READY, RunStepStatus.RUNNING]).exists()


def _all_done(executor: ParallelTaskExecutor) -> bool:
    return all(state == State.DONE for state in executor.task_states.values())


def _first_error(run: Run) -> str:
    failed = run.steps.filter(status=RunStepStatus.FAILED).exclude(error="").first()
    return failed.error if failed else _("Nobody could go on with what is left.")


def _end(run: Run, status: str, error: str, *, now: datetime) -> None:
    run.status, run.error, run.finished_at = status, error[:300], now
    run.save(update_fields=["status", "error", "finished_at"])
    note(run, "run", {"status": status}, now=now)
    if not run.is_private:
        emit(run.workspace_id, WebhookEvent.RUN_FINISHED, [run.public_id], action=status)


def _show_tasks(run: Run, plan: TaskPlan) -> None:
    """The rows that people see, after the plan or the board."""
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


def hurry() -> None:
    """A ticket for a worker to look for what can be done. They are all the same, and one too many does nothing."""
    job = {"task_name": "runs", "timeout": TICKET_SECONDS}
    transaction.on_commit(lambda: async_task("chat.tasks.work_on_runs", **job))
