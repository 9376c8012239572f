"""What a step is asked. The contract is always in it: a caller's words stand before it and never in its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chat.agents.plan import PlannedStep
from chat.agents.run_memory import AgentMemory
from chat.prompting.text import one_line, prompt_text
from memoryhub.llm.base import Tool

FINISH = "finish_step"


def system_prompt(
    step: PlannedStep, *, preamble: str = "", finishes_task: bool, in_team: bool = False
) -> str:
    parts = [preamble.strip(), prompt_text("run_step")]
    if in_team:
        parts.append(prompt_text("run_team"))
    parts.append(prompt_text("run_plain" if step.schema is None else "run_finish"))
    if finishes_task:
        parts.append(prompt_text("run_finish_task"))
    return "\n\n".join(filter(None, parts))


def user_message(instructions: str, keys: Sequence[str], memory: AgentMemory) -> str:
    """The instructions, and by name what they build on. Never a value: the model reads what it needs."""
    if not keys:
        return instructions
    titles = memory.titles(keys)
    lines = [f"- {key} — {title}" if (title := one_line(titles.get(key, ""))) else f"- {key}" for key in keys]
    return "\n".join([instructions, "", "# Builds on (`memory_read` these)", *lines])


def finish_tool(schema: Any) -> Tool:
    return Tool(
        FINISH,
        "End with the result.",
        {"type": "object", "properties": {"result": schema}, "required": ["result"]},
    )


def result_in(arguments: str, schema: Any) -> Any:
    """What was handed in. Raises ValueError where that cannot be read; a result without its wrapping is taken."""
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        raise ValueError("the arguments are not valid JSON") from None
    if isinstance(given, dict) and "result" in given:
        return given["result"]
    if isinstance(given, dict) and given and "result" not in (schema.get("properties") or {}):
        return given
    raise ValueError("“result” is missing")
