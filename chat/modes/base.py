"""Base of the modes: a way to make an answer, with its requirements of the model."""

from __future__ import annotations

from typing import ClassVar

from django.utils.functional import Promise

from chat.answers.live import LiveAnswer
from chat.models.steps import Mode
from chat.tools.loop import Plan, write
from memoryhub.llm.base import Capabilities


class AnswerMode:
    """The plain one, and the base of the others. Stateless: one object serves all answers."""

    name: ClassVar[Mode] = Mode.CHAT
    about: ClassVar[str | Promise] = ""  # what it does and how long it takes, for who chooses
    why_not: ClassVar[str | Promise] = ""  # said where the model cannot do it
    distilled_as: ClassVar[str | None] = (
        None  # source_type under which the whole answer is mined as an output
    )
    may_wait: ClassVar[bool] = False  # its answer may end with a plan that waits for the person

    def can(self, capabilities: Capabilities) -> bool:
        return True

    def reserve(self) -> int:
        """Tokens that the prompt leaves free for what the mode adds to it."""
        return 0

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Grow the answer to its end. Raises a ModelError; what was written before it stays."""
        await write(live, plan, user_pk)
