"""A text that a tool reads to the model in portions, as data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chat.models import ToolOutcome
from chat.prompting.text import escape
from chat.tools.base import Arguments, Result, at_most, within

READ_AT_ONCE = 6000  # characters


class ToRead(Arguments):
    id: Annotated[str, at_most(40)]
    start: Annotated[int, *within(0, 10**9)] = Field(0, alias="from")


def portion(title: str, text: str, *, start: int, of: int) -> Result:
    """What stands from ``start`` on in a text of so many characters, and where to go on."""
    if not text:
        return Result("There is no text from there on.", ToolOutcome.FOUND)
    ends = start + len(text)
    go_on = f"\n(go on from {ends} of {of})" if ends < of else ""
    lines = "\n".join(map(escape, text.splitlines()))
    return Result(f"# {title}, characters {start} to {ends}\n{lines}{go_on}", ToolOutcome.FOUND, count=1)
