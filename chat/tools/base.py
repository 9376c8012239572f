"""What a tool of a chat is: what the model is told of it, how its arguments are read, and what a call came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chat.models import Chat, Message, ToolOutcome
from memoryhub.llm.base import Tool
from workspaces.models import User

MOST_ARGUMENTS = 20_000  # characters of one call


class ToolTrouble(Exception):
    """A call that cannot be done, in words that let the model do better. They never quote stored text."""

    def __init__(self, message: str, outcome: str = ToolOutcome.ERROR) -> None:
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class Caller:
    """For whom and where a tool acts, loaded anew for every call: rights may have changed since the turn began."""

    user: User
    chat: Chat
    answer: Message
    question: Message
    now: datetime
    leaves: bool = True  # what the model is shown leaves this machine


@dataclass(frozen=True)
class Result:
    """``text`` is what the model reads. ``output`` is what may be mined for memories later; most have none."""

    text: str
    outcome: str
    memory_ids: tuple[str, ...] = ()
    count: int = 0
    output: str = ""


@dataclass(frozen=True)
class ChatTool:
    """``kept`` names the arguments that stay with the chat for its readers: never the text of a memory."""

    name: str
    description: str
    fields: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    act: Callable[[Caller, dict[str, Any]], Result]
    kept: tuple[str, ...] = ()

    @property
    def tool(self) -> Tool:
        schema = {
            "type": "object",
            "properties": {name: dict(field) for name, field in self.fields.items()},
            "required": list(self.required),
        }
        return Tool(self.name, self.description, schema)


def read_arguments(tool: ChatTool, text: str) -> dict[str, Any]:
    """The arguments a model wrote, checked. Raises ToolTrouble naming everything that is wrong.

    Numbers may come as text, and too large a limit is taken for the largest: neither is worth another round.
    Arguments nobody asked for are ignored.
    """
    if len(text) > MOST_ARGUMENTS:
        raise ToolTrouble(f"the arguments may have at most {MOST_ARGUMENTS:,} characters")
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ToolTrouble("the arguments are not valid JSON; send one JSON object") from None
    if not isinstance(given, dict):
        raise ToolTrouble("the arguments must be one JSON object")
    values, wrong = {}, []
    for name, field in tool.fields.items():
        if given.get(name) is None or (given[name] == "" and name not in tool.required):
            if name in tool.required:
                wrong.append(f"{name} is required")
            continue
        try:
            values[name] = _READERS[str(field["type"])](given[name], field)
        except ValueError as error:
            wrong.append(f"{name} {error}")
    if wrong:
        raise ToolTrouble("; ".join(wrong))
    return values


def _text(value: Any, field: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.strip():
        raise ValueError("must not be blank")
    longest = field.get("maxLength")
    if longest is not None and len(value.strip()) > longest:
        raise ValueError(f"may have at most {longest:,} characters, and has {len(value.strip()):,}")
    return value.strip()


def _number(value: Any, field: Mapping[str, Any]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError("must be a number") from None
    if not number == number:  # NaN
        raise ValueError("must be a number")
    return float(min(max(number, field.get("minimum", number)), field.get("maximum", number)))


def _integer(value: Any, field: Mapping[str, Any]) -> int:
    number = _number(value, field)
    if not number.is_integer():
        raise ValueError("must be a whole number")
    return int(number)


_READERS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "string": _text,
    "number": _number,
    "integer": _integer,
}
