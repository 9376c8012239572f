"""Executors, which decide which steps of a run can begin next. Their state is stored with the run, so that another
process can continue.

``TaskExecutor`` does so for the steps of one task, ``ParallelTaskExecutor`` for the parallel tasks of a plan.
``agent_step`` runs a single step for a program with its own workflow graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from chat.runs.plan import PlannedStep, PlannedTask, TaskPlan
from chat.runs.run_entries import MemoryEntry, MemoryKind, RunEntries, memory_keys
from chat.runs.step import Outcome, StepContext, StepExecutor, Unit


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


States = MutableMapping[str, State]


MOST_ITEMS = 100  # maximum length of a list that a step processes
ITEMS_AT_ONCE = 4  # items of one step that run concurrently


def seed_inputs(memory: RunEntries, inputs: Mapping[str, Any], *, source: str = "", prefix: str = "") -> None:
    """Add inputs to the memory as ``input:`` entries. ``prefix`` is put before each name."""
    for name, value in inputs.items():
        about = {"source": source or None, "title": prefix + name}
        memory.set(memory_keys.input(prefix + name), MemoryKind.INPUT, value, **about)


class TaskExecutor:
    """The executor of one task's steps. The result of the last step becomes the task's."""

    def __init__(
        self,
        task: PlannedTask,
        memory: RunEntries,
        *,
        upstream: Sequence[str] = (),
        inputs: Mapping[str, Any] | None = None,
        states: States | None = None,
    ) -> None:
        self.task, self.memory = task, memory
        self.upstream = tuple(upstream)
        self.states: States = {} if states is None else states
        self.final_step = task.steps[-1].id
        seed_inputs(memory, inputs or {})

    def ready(self) -> list[Unit]:
        while True:
            before, units = len(self.states), list[Unit]()
            for step in self.task.steps:
                if self._may_begin(step):
                    units += self._items(step) if step.over else [self._unit(step)]
            # Otherwise a step ended at once, because its list was empty or missing.
            if len(self.states) == before:
                return units

    def begin(self, unit: Unit) -> None:
        self.states[unit.step.id] = State.RUNNING

    def finish(self, unit: Unit, outcome: Outcome) -> None:
        self.states[unit.step.id] = State.DONE if outcome.ok else State.FAILED
        if unit.of:
            self._collect(next(step for step in self.task.steps if step.id == unit.of))
        skip_dependents(self.task.steps, self.states)

    @property
    def is_over(self) -> bool:
        return all(self.states.get(step.id) in _ENDS for step in self.task.steps)

    @property
    def ok(self) -> bool:
        """Whether the final step is done, so that the task has a result."""
        return self.states.get(self.final_step) == State.DONE

    def _may_begin(self, step: PlannedStep) -> bool:
        """Return whether a step can begin. A step over a list may begin further items while it runs."""
        state = self.states.get(step.id)
        is_open = state is None or (bool(step.over) and state == State.RUNNING)
        return is_open and all(self.states.get(name) == State.DONE for name in step.depends_on)

    def _unit(self, step: PlannedStep) -> Unit:
        return Unit(
            step, self.task.id, self.task.title, self.upstream, finishes_task=step.id == self.final_step
        )

    def _items(self, step: PlannedStep) -> list[Unit]:
        """Return the next items of the step's list that can begin. The step runs once for each item."""
        items = _list_in(self.memory.get_value(memory_keys.step(step.over)))
        if items is None or len(items) > MOST_ITEMS:
            why = "no list" if items is None else f"a list of {len(items)}, and {MOST_ITEMS} are the most"
            self._settle(step, State.FAILED, {"error": f"“{step.over}” gave {why}."})
            skip_dependents(self.task.steps, self.states)
            return []
        if not items:
            self._settle(step, State.DONE, [])
            return []
        self.states[step.id] = State.RUNNING
        running = sum(self.states.get(_item(step, n)) == State.RUNNING for n in range(len(items)))
        fresh = [n for n in range(len(items)) if _item(step, n) not in self.states]
        return [self._item_unit(step, n, items[n]) for n in fresh[: max(0, ITEMS_AT_ONCE - running)]]

    def _item_unit(self, step: PlannedStep, number: int, item: Any) -> Unit:
        unit_id = _item(step, number)
        seed_inputs(self.memory, {unit_id: item}, source=step.over)
        needs = tuple(name for name in step.depends_on if name != step.over)
        part = PlannedStep(unit_id, step.instructions, needs, step.schema)
        upstream = (memory_keys.input(unit_id), *self.upstream)
        return Unit(part, self.task.id, self.task.title, upstream, of=step.id)

    def _collect(self, step: PlannedStep) -> None:
        """Store the list of the items' results, or errors, as the step's result once all items are over."""
        count = len(_list_in(self.memory.get_value(memory_keys.step(step.over))) or [])
        ids = [_item(step, n) for n in range(count)]
        if any(self.states.get(item) not in _ENDS for item in ids):
            return
        results = [self.memory.get_value(memory_keys.step(item)) for item in ids]
        worked = any(self.states[item] == State.DONE for item in ids)
        self._settle(step, State.DONE if worked else State.FAILED, results)

    def _settle(self, step: PlannedStep, state: State, value: Any) -> None:
        self.states[step.id] = state
        metadata = {"title": self.task.title}
        self.memory.set(memory_keys.step(step.id), MemoryKind.STEP_RESULT, value, source=step.id, **metadata)
        if state == State.DONE and step.id == self.final_step:
            key = memory_keys.task(self.task.id)
            self.memory.set(key, MemoryKind.TASK_RESULT, value, source=self.task.id, **metadata)


_ENDS = (State.DONE, State.FAILED, State.SKIPPED)


def skip_dependents(planned: Sequence[PlannedStep | PlannedTask], states: States) -> None:
    """Mark in ``states`` all steps or tasks as skipped that depend, directly or not, on a failed or skipped one."""
    while more := [
        each.id
        for each in planned
        if each.id not in states
        and any(states.get(name) in (State.FAILED, State.SKIPPED) for name in each.depends_on)
    ]:
        states.update(dict.fromkeys(more, State.SKIPPED))


def _item(step: PlannedStep, number: int) -> str:
    return f"{step.id}[{number}]"


def _list_in(value: Any) -> list[Any] | None:
    """Return the list in a step's result: itself, the only one in an object, JSON in a text, or lines of a text."""
    if isinstance(value, str):  # from a step without a schema
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [line for raw in value.splitlines() if (line := raw.strip(" \t-*•"))] or None
    if isinstance(value, dict):
        lists = [each for each in value.values() if isinstance(each, list)]
        value = lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


class ParallelTaskExecutor:
    """The executor of a plan's tasks, which run in parallel as far as dependencies allow."""

    def __init__(
        self,
        plan: TaskPlan,
        memory: RunEntries,
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
        for task in plan.tasks:  # tasks that another process has finished
            self._settle(task)

    def ready(self) -> list[Unit]:
        while True:
            before, units = dict(self.task_states), list[Unit]()
            for task in self.plan.tasks:
                if self.task_states.get(task.id) in (None, State.RUNNING) and self._may_begin(task):
                    units += self._executors[task.id].ready()
                    self._settle(task)
            if self.task_states == before:  # otherwise a task ended without a step, and another may begin
                return units

    def begin(self, unit: Unit) -> None:
        self._executors[unit.task_id].begin(unit)
        self.task_states[unit.task_id] = State.RUNNING

    def finish(self, unit: Unit, outcome: Outcome) -> None:
        executor = self._executors[unit.task_id]
        executor.finish(unit, outcome)
        self._settle(executor.task)

    @property
    def is_over(self) -> bool:
        return all(self.task_states.get(task.id) in _ENDS for task in self.plan.tasks)

    @property
    def ok(self) -> bool:
        """Whether all tasks are done."""
        return all(state == State.DONE for state in self.task_states.values())

    def final_result(self) -> Any:
        """Return the result of the last task; None if it has none."""
        return self.task_result(self.plan.tasks[-1].id)

    def all_results(self) -> list[MemoryEntry]:
        return self.memory.list(kind=MemoryKind.TASK_RESULT)

    def task_result(self, task_id: str) -> Any:
        return self.memory.get_value(memory_keys.task(task_id))

    def _may_begin(self, task: PlannedTask) -> bool:
        return all(self.task_states.get(name) == State.DONE for name in task.depends_on)

    def _settle(self, task: PlannedTask) -> None:
        """If all steps of the task are over, mark it as done or failed, and skip tasks that depend on a failed one."""
        executor = self._executors[task.id]
        if self.task_states.get(task.id) in _ENDS or not executor.is_over:
            return
        self.task_states[task.id] = State.DONE if executor.ok else State.FAILED
        if executor.ok:
            self.memory.set_if_absent(
                memory_keys.task(task.id),
                MemoryKind.TASK_RESULT,
                self.memory.get_value(memory_keys.step(task.steps[-1].id)),
                source=task.id,
                title=task.title,
            )
        skip_dependents(self.plan.tasks, self.task_states)


def agent_step(
    node: str,
    instructions: str,
    inputs: Mapping[str, Any],
    context: StepContext,
    *,
    schema: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run one node of another program's workflow graph as a step, and return its outcome.

    The result is stored under ``step:<node>``, where later nodes can read it. Inputs that are None are omitted.
    """
    values = {name: value for name, value in inputs.items() if value is not None}
    seed_inputs(context.memory, values, source=node, prefix=f"{node}.")
    upstream = tuple(memory_keys.input(f"{node}.{name}") for name in values)
    step = PlannedStep(node, instructions, schema=schema)
    return StepExecutor(Unit(step, upstream=upstream), context).execute()


def isolated(context: StepContext) -> StepContext:
    """Return a copy of the context with an empty memory, for a run inside this run."""
    return replace(context, memory=RunEntries(context.memory.now))
