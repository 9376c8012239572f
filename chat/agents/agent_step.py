"""A single step for programs that run graphs of their own: what comes in by a node's edges becomes its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chat.agents.plan import PlannedStep
from chat.agents.run_memory import AgentMemory, memory_keys
from chat.agents.step import Outcome, StepContext, StepExecutor
from chat.agents.task import seed_inputs


def agent_step(
    node: str,
    instructions: str,
    inputs: Mapping[str, Any],
    context: StepContext,
    *,
    schema: Mapping[str, Any] | None = None,
) -> Outcome:
    """Its result is under ``step:<node>``, for the nodes after it. What comes in empty is left out."""
    given = {name: value for name, value in inputs.items() if value is not None}
    seed_inputs(context.memory, given, source=node, prefix=f"{node}.")
    upstream = [memory_keys.input(f"{node}.{name}") for name in given]
    step = PlannedStep(node, instructions, schema=schema)
    return StepExecutor(step, context, upstream=upstream).execute()


def isolated(context: StepContext) -> StepContext:
    """For a run within the run: it shares nothing but the budget, the model and the tools."""
    return replace(context, memory=AgentMemory(context.memory.now))
