"""Run an executor to its end in this process, without the product's tables and jobs."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import RLock

from chat.runs.scheduling import ParallelTaskExecutor, TaskExecutor
from chat.runs.step import Outcome, StepContext, StepExecutor, Unit
from chat.runs.team import TaskBoard, TeamExecutor, context_of_member

AT_ONCE = 4
Executor = TaskExecutor | ParallelTaskExecutor | TeamExecutor


def drive(executor: Executor, context: StepContext) -> None:
    lock = RLock()  # on the executor, as the product locks the run's row
    with ThreadPoolExecutor(AT_ONCE) as threads:
        running: dict[Future[Outcome], Unit] = {}
        while True:
            with lock:
                for unit in executor.ready()[: AT_ONCE - len(running)]:
                    executor.begin(unit)
                    own = member_context(executor, unit.member, context, lock)
                    running[threads.submit(_execute, unit, own)] = unit
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            with lock:
                for future in done:
                    executor.finish(running.pop(future), future.result())


def member_context(executor: Executor, name: str, context: StepContext, lock: RLock) -> StepContext:
    if not isinstance(executor, TeamExecutor):
        return context

    @contextmanager
    def opened() -> Iterator[TaskBoard]:
        with lock:
            yield executor.board

    member = next(each for each in executor.members if each.name == name)
    return context_of_member(member, context, executor.members, opened)


def _execute(unit: Unit, context: StepContext) -> Outcome:
    try:
        return StepExecutor(unit, context).execute()
    except Exception as error:
        return Outcome(False, error=str(error) or type(error).__name__)
