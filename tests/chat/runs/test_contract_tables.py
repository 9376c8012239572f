"""The tables of the memory's contract, a test for each row and named after it. Tools: test_run_entries.py.

Needs neither database nor model.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chat.runs.budget import Budget, Limits
from chat.runs.plan import PlannedStep, TaskPlan, read_plan
from chat.runs.run_entries import MemoryKind, RunEntries, memory_keys
from chat.runs.run_memory_tools import memory_tools
from chat.runs.scheduling import ParallelTaskExecutor, State, TaskExecutor, agent_step
from chat.runs.step import NOT_FINISHED, Reply, StepContext, StepExecutor, Unit
from chat.runs.team import TeamExecutor
from memoryhub.llm.base import ToolCall
from tests.chat.runs.driving import drive

Said = Callable[[str], Any]  # the model's reply to a user message: words, or a call


@pytest.fixture
def memory() -> RunEntries:
    return RunEntries()


def context(memory: RunEntries, says: Said = lambda asked: "Done.", **more: Any) -> StepContext:
    def ask(messages: Any, tools: Any, *, may_call: bool) -> Reply:
        said = says(messages[1].content)
        if isinstance(said, ToolCall):
            return Reply("", (said,))
        if any(tool.name == "finish_step" for tool in tools):
            return Reply("", (ToolCall("f", "finish_step", json.dumps({"result": said})),))
        return Reply(said)

    return StepContext(memory, ask, **more)


def keys(memory: RunEntries) -> dict[str, str]:
    return {entry.key: str(entry.kind) for entry in memory.snapshot()}


def plan(*tasks: dict[str, Any]) -> TaskPlan:
    return read_plan({"tasks": list(tasks)})


TWO = ({"id": "a", "title": "A"}, {"id": "b", "title": "B", "depends_on": ["a"]})
LIST = {"type": "array", "items": {}}
FAN_OUT = plan(
    {
        "id": "t",
        "steps": [
            {"id": "find", "instructions": "Find.", "schema": LIST},
            {"id": "each", "instructions": "Each.", "over": "find", "schema": {"type": "string"}},
        ],
    }
).tasks[0]


def step(schema: Any = None, **more: Any) -> Unit:
    return Unit(PlannedStep("s", "Do it.", schema=schema), **more)


# --- namespaces: key, helper, writer


def test_namespace_step_is_written_by_step_executor_and_process_mode(memory: RunEntries) -> None:
    StepExecutor(step(), context(memory)).execute()
    assert keys(memory) == {memory_keys.step("s"): "step_result"}
    drive(TaskExecutor(FAN_OUT, memory), context(memory, lambda asked: ["x"] if asked == "Find." else "X"))
    assert memory.get_value("step:each") == ["X"] and keys(memory)["step:each"] == "step_result"


def test_namespace_task_is_written_by_finishing_steps_plans_and_teams(memory: RunEntries) -> None:
    StepExecutor(step(finishes_task=True, task_id="one"), context(memory)).execute()
    drive(ParallelTaskExecutor(plan({"id": "two"}), memory), context(memory))
    drive(TeamExecutor(plan({"id": "three"}), memory), context(memory))
    found = [entry.key for entry in memory.list(kind="task_result")]
    assert found == [memory_keys.task(name) for name in ("one", "two", "three")]


def test_namespace_input_is_written_by_tasks_plans_and_agent_steps(memory: RunEntries) -> None:
    TaskExecutor(plan({"id": "t"}).tasks[0], memory, inputs={"a": 1})
    ParallelTaskExecutor(plan({"id": "t"}), memory, inputs={"b": 2})
    agent_step("node", "Do it.", {"c": 3, "none": None}, context(memory))
    found = {entry.key: entry.value for entry in memory.list(kind="input")}
    assert found == {memory_keys.input("a"): 1, memory_keys.input("b"): 2, memory_keys.input("node.c"): 3}


def test_namespace_shared_is_written_by_memory_write_alone(memory: RunEntries) -> None:
    tool = {tool.name: tool for tool in memory_tools(memory, source="s", on_access=lambda op, data: None)}[
        "memory_write"
    ]
    for key in ("x", "task:x", "shared:x"):
        tool.call(json.dumps({"key": key, "value": key}), "call")
    assert keys(memory) == {memory_keys.shared("x"): "shared", "shared:task:x": "shared"}


# --- a step: writes, and when


def test_step_writes_the_task_result_where_it_is_the_last_of_its_task(memory: RunEntries) -> None:
    steps = [{"id": name, "instructions": "Do it."} for name in ("first", "last")]
    drive(
        TaskExecutor(plan({"id": "t", "steps": steps}).tasks[0], memory),
        context(memory, lambda asked: "Done."),
    )
    assert keys(memory) == {"step:first": "step_result", "step:last": "step_result", "task:t": "task_result"}
    entry = memory.get("task:t")
    assert entry is not None and entry.source == "t"


def test_step_writes_an_error_where_its_rounds_are_exhausted(memory: RunEntries) -> None:
    again = context(
        memory, lambda asked: ToolCall("l", "memory_list", "{}"), budget=Budget(Limits(step_rounds=2))
    )
    assert not StepExecutor(step({"type": "string"}, finishes_task=True, task_id="t"), again).execute().ok
    assert memory.get_value("step:s") == {"error": NOT_FINISHED} and not memory.has("task:t")


# --- a plan: effects on the memory


def test_plan_startup_seeds_each_input(memory: RunEntries) -> None:
    ParallelTaskExecutor(plan(*TWO), memory, inputs={"topic": "cats", "year": 2026})
    assert keys(memory) == {"input:topic": "input", "input:year": "input"}
    assert [entry.title for entry in memory.snapshot()] == ["topic", "year"]


def test_plan_forwards_the_keys_of_the_tasks_that_each_task_depends_on(memory: RunEntries) -> None:
    executor = ParallelTaskExecutor(plan(*TWO), memory)
    (first,) = executor.ready()
    executor.begin(first)
    executor.finish(first, StepExecutor(first, context(memory)).execute())
    (second,) = executor.ready()
    assert (first.upstream, second.upstream) == ((), ("task:a",))


def test_task_forwards_the_keys_of_its_plan_to_every_step_as_they_are(memory: RunEntries) -> None:
    steps = [
        {"id": name, "instructions": "Do it.", "depends_on": needs}
        for name, needs in (("x", []), ("y", ["x"]))
    ]
    executor, seen = (
        TaskExecutor(plan({"id": "t", "steps": steps}).tasks[0], memory, upstream=["task:a", "odd"]),
        [],
    )
    drive(executor, context(memory, lambda asked: seen.append(asked) or "Done."))
    hint = "# Builds on (`memory_read` these)"
    assert seen == [f"Do it.\n\n{hint}\n{own}- task:a\n- odd" for own in ("", "- step:x — t\n")]


def test_plan_falls_back_to_the_last_step_where_a_task_has_no_result(memory: RunEntries) -> None:
    memory.set("step:a", MemoryKind.STEP_RESULT, "of the step")
    executor = ParallelTaskExecutor(plan({"id": "a", "title": "A"}), memory, states={"a": State.DONE})
    assert executor.is_over and executor.task_result("a") == memory.get_value("task:a") == "of the step"


def test_plan_writes_a_task_result_only_where_none_is_present(memory: RunEntries) -> None:
    memory.set("task:a", MemoryKind.TASK_RESULT, "there before")
    memory.set("step:a", MemoryKind.STEP_RESULT, "of the step")
    ParallelTaskExecutor(plan({"id": "a", "title": "A"}), memory, states={"a": State.DONE})
    assert memory.get_value("task:a") == "there before"


def test_plan_reads_its_final_result_all_results_and_that_of_one_task(memory: RunEntries) -> None:
    executor = ParallelTaskExecutor(plan(*TWO), memory)
    drive(executor, context(memory, lambda asked: asked.splitlines()[0]))
    assert executor.final_result() == "B" == memory.get_value("task:b")
    assert [entry.key for entry in executor.all_results()] == ["task:a", "task:b"]
    assert (executor.task_result("a"), executor.task_result("nothing")) == ("A", None)
