"""What the executors have in common: what can be done next, by whom, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chat.agents.plan import PlannedStep
from chat.agents.step import Outcome, StepContext, StepExecutor

AT_ONCE = 4  # units of one executor in one process


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


States = MutableMapping[str, State]


@dataclass(frozen=True)
class Unit:
    """What one worker does at one time: a step, one item of a step, a teammate's task. Its id is its step's."""

    step: PlannedStep
    task_id: str
    task_title: str
    upstream: tuple[str, ...] = ()
    finishes_task: bool = False
    of: str = ""  # the step that it is an item of
    member: str = ""

    @property
    def id(self) -> str:
        return self.step.id


class Executor(Protocol):
    """A state machine: whoever drives it asks what is ready, says what is begun, and what came of it. Everything it
    knows lies in the run's memory and in its states, so another process goes on where one was.
    """

    def ready(self) -> list[Unit]:
        """What can begin now, without what is running."""
        ...

    def begin(self, unit: Unit) -> None: ...

    def finish(self, unit: Unit, outcome: Outcome) -> None: ...

    @property
    def is_over(self) -> bool: ...


def execute(unit: Unit, context: StepContext) -> Outcome:
    """One unit, in this process."""
    executor = StepExecutor(
        unit.step,
        context,
        upstream=unit.upstream,
        task_id=unit.task_id,
        task_title=unit.task_title,
        finishes_task=unit.finishes_task,
    )
    try:
        return executor.execute()
    except Exception as error:
        return Outcome(False, error=str(error) or type(error).__name__)


def drive(executor: Executor, context_of: Mapping[str, StepContext] | StepContext) -> None:
    """Do everything that there is to do, in threads of this process. ``context_of`` each member, or one for all."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        running: dict[Future[Outcome], Unit] = {}
        while True:
            for unit in executor.ready()[: AT_ONCE - len(running)]:
                executor.begin(unit)
                context = context_of if isinstance(context_of, StepContext) else context_of[unit.member]
                running[threads.submit(execute, unit, context)] = unit
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                executor.finish(running.pop(future), future.result())
