"""Run an executor to its end in this process, without the product's tables and jobs."""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from chat.runs.executors import Executor, Unit
from chat.runs.step import Outcome, StepContext, StepExecutor
from chat.runs.team import TeamExecutor, context_of_member

AT_ONCE = 4


def drive(executor: Executor, context: StepContext) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        running: dict[Future[Outcome], Unit] = {}
        while True:
            for unit in executor.ready()[: AT_ONCE - len(running)]:
                executor.begin(unit)
                running[threads.submit(_execute, unit, _context(executor, unit, context))] = unit
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                executor.finish(running.pop(future), future.result())


def _context(executor: Executor, unit: Unit, context: StepContext) -> StepContext:
    if not isinstance(executor, TeamExecutor):
        return context
    member = next(each for each in executor.members if each.name == unit.member)
    return context_of_member(member, context, executor.members, executor.opened)


def _execute(unit: Unit, context: StepContext) -> Outcome:
    step = StepExecutor(
        unit.step,
        context,
        upstream=unit.upstream,
        task_id=unit.task_id,
        task_title=unit.task_title,
        finishes_task=unit.finishes_task,
    )
    try:
        return step.execute()
    except Exception as error:
        return Outcome(False, error=str(error) or type(error).__name__)
