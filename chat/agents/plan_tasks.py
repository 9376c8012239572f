"""The tasks of a plan, side by side where none waits for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chat.agents.plan import PlannedTask, TaskPlan
from chat.agents.run_memory import AgentMemory, MemoryEntry, MemoryKind, memory_keys
from chat.agents.step import Outcome
from chat.agents.task import TaskExecutor, seed_inputs, skip_what_waits
from chat.agents.units import State, States, Unit


class ParallelTaskExecutor:
    """It keeps no results of its own: they are where everybody finds them, in the memory."""

    def __init__(
        self,
        plan: TaskPlan,
        memory: AgentMemory,
        *,
        inputs: Mapping[str, Any] | None = None,
        states: States | None = None,
        task_states: States | None = None,
    ) -> None:
        self.plan, self.memory = plan, memory
        self.states: States = {} if states is None else states
        self.task_states: States = {} if task_states is None else task_states
        seed_inputs(memory, inputs or {})
        self._executors = {
            task.id: TaskExecutor(
                task, memory, upstream=[*map(memory_keys.task, task.depends_on)], states=self.states
            )
            for task in plan.tasks
        }
        for task in plan.tasks:  # what another process has seen to its end
            self._settle(task)

    def ready(self) -> list[Unit]:
        while True:
            before, found = dict(self.task_states), list[Unit]()
            for task in self.plan.tasks:
                if self.task_states.get(task.id) in (None, State.RUNNING) and self._may_begin(task):
                    found += self._executors[task.id].ready()
                    self._settle(task)
            if self.task_states == before:  # else a task was over without a step, and another may begin
                return found

    def begin(self, unit: Unit) -> None:
        self._executors[unit.task_id].begin(unit)
        self.task_states[unit.task_id] = State.RUNNING

    def finish(self, unit: Unit, outcome: Outcome) -> None:
        executor = self._executors[unit.task_id]
        executor.finish(unit, outcome)
        self._settle(executor.task)

    @property
    def is_over(self) -> bool:
        ends = (State.DONE, State.FAILED, State.SKIPPED)
        return all(self.task_states.get(task.id) in ends for task in self.plan.tasks)

    def final_result(self) -> Any:
        """Of the last task; None where it has none."""
        return self.task_result(self.plan.tasks[-1].id)

    def all_results(self) -> list[MemoryEntry]:
        return self.memory.list(kind=MemoryKind.TASK_RESULT)

    def task_result(self, task_id: str) -> Any:
        return self.memory.get_value(memory_keys.task(task_id))

    def _may_begin(self, task: PlannedTask) -> bool:
        return all(self.task_states.get(name) == State.DONE for name in task.depends_on)

    def _settle(self, task: PlannedTask) -> None:
        """A task whose steps are over has its result, if only its last step's, or has failed; then nothing begins that
        builds on it.
        """
        executor = self._executors[task.id]
        if self.task_states.get(task.id) in (State.DONE, State.FAILED, State.SKIPPED) or not executor.is_over:
            return
        self.task_states[task.id] = State.DONE if executor.ok else State.FAILED
        if executor.ok:
            self.memory.set_if_absent(
                memory_keys.task(task.id),
                MemoryKind.TASK_RESULT,
                self.memory.get_value(memory_keys.step(task.last.id)),
                source=task.id,
                title=task.title,
            )
        skip_what_waits(((each.id, each.depends_on) for each in self.plan.tasks), self.task_states)
