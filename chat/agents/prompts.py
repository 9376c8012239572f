"""What a step is asked. The contract is always in it: a caller's words stand before it and never in its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chat.agents.plan import PlannedStep
from chat.agents.run_memory import AgentMemory
from chat.agents.schemas import fitted
from chat.prompting.text import one_line, prompt_text
from memoryhub.llm.base import Tool
from memoryhub.llm.output_parsing import repaired_object

FINISH = "finish_step"
LONGEST_REPAIRED, DEEPEST = 50_000, 12  # of arguments that are not quite JSON: characters, levels


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
    """Return the submitted result. JSON that is nearly right is repaired, unwrapped, and made a list if it is a single
    item. Raises ValueError if it cannot be read.
    """
    given = _arguments(arguments)
    if isinstance(given, dict) and "result" in given:
        return fitted(given["result"], schema)
    if given and "result" not in (schema.get("properties") or {}):
        return fitted(given, schema)
    raise ValueError("“result” is missing")


def _arguments(text: str) -> dict[str, Any] | list[Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        start = text.find("{")
        found = (
            repaired_object(text, start, longest=LONGEST_REPAIRED, deepest=DEEPEST) if start >= 0 else None
        )
        if found is None:
            raise ValueError("the arguments are not valid JSON") from None
        given = found[0]
    return given if isinstance(given, dict | list) else {}
