"""What a step may have done: a tool with its schema, and the call of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from chat.tools.base import Arguments, ChatTool, Result, read_arguments
from memoryhub.llm.base import Speaker, Tool

A = TypeVar("A", bound=Arguments)
LONGEST_RESULT = 24_000  # characters of what one call returns


def _without_nul(text: str) -> str:
    """The database keeps it nowhere, and so would find it nowhere either."""
    return text.replace("\x00", "")


KEPT = AfterValidator(_without_nul)
Word = Annotated[str, KEPT]


@dataclass(frozen=True)
class StepTool:
    """``call`` takes the arguments as the model wrote them and a name for this call that is the same whenever it is
    made again; it raises ToolTrouble or a DomainError. ``speaker``: who says what it returns. ``is_repeatable``: done
    twice it does no more than once.
    """

    tool: Tool
    call: Callable[[str, str], str]
    speaker: Speaker
    is_repeatable: bool = True

    @property
    def name(self) -> str:
        return self.tool.name


def step_tool(
    name: str,
    description: str,
    takes: type[A],
    act: Callable[[A, str], str],
    *,
    speaker: Speaker = Speaker.RUN,
    is_repeatable: bool = True,
) -> StepTool:
    def unused(caller: object, asked: A) -> Result:
        raise NotImplementedError

    described = ChatTool(name, description, takes, unused, speaker)
    return StepTool(
        described.tool,
        lambda arguments, key: act(read_arguments(described.takes, arguments), key),
        speaker,
        is_repeatable,
    )
