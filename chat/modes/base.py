"""Base class of the modes in which an answer is made."""

from __future__ import annotations

from typing import ClassVar

from django.utils.functional import Promise

from chat.answers.live import LiveAnswer
from chat.models.steps import Mode
from chat.tools.loop import Plan, write
from memoryhub.llm.base import Capabilities


class AnswerMode:
    """The plain chat mode, and the base class of the others. Stateless, so one instance serves all answers."""

    name: ClassVar[Mode] = Mode.CHAT
    about: ClassVar[str | Promise] = ""  # describes the mode and its duration to people who choose one
    why_not: ClassVar[str | Promise] = ""  # shown if the model does not support the mode
    distilled_as: ClassVar[str | None] = None  # source_type for distilling the whole answer
    may_wait: ClassVar[bool] = False  # the answer may end with a plan that waits for review

    def can(self, capabilities: Capabilities) -> bool:
        return True

    def reserve(self) -> int:
        """Return how many tokens the prompt must leave free for text that the mode adds."""
        return 0

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Write the answer to its end. Raises ModelError if the model fails; text written before that is kept."""
        await write(live, plan, user_pk)
