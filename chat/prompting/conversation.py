"""A conversation as a prompt is built from it: who said what, and the summary of what is older. It knows no table,
so that a door without a stored chat makes one of what it was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memoryhub.llm.base import Picture, Speaker
from workspaces.models import Agent

LOOKED_AT = 200  # earlier messages, at most, however short


@dataclass(frozen=True)
class Line:
    """``key``: of the stored message, or its number in what was sent; they grow along the conversation."""

    role: Literal["user", "assistant"]
    content: str
    key: int
    pictures: tuple[Picture, ...] = ()
    is_imported: bool = False  # under somebody's name, as its content says

    @property
    def speaker(self) -> Speaker:
        if self.is_imported:
            return Speaker.IMPORT
        return Speaker.PERSON if self.role == "user" else Speaker.MODEL


@dataclass(frozen=True)
class Conversation:
    """``earlier``: newest first, none of them blank, and one more than ``LOOKED_AT`` where there are more."""

    question: Line
    earlier: Sequence[Line] = ()
    agent: Agent | None = None
    summary: str = ""
