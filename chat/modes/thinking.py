"""What a model shows of its thinking before it answers: a step beside the answer, never a part of it."""

from __future__ import annotations

from chat.answers.live import LiveAnswer
from chat.answers.threads import in_thread
from chat.models import Message
from chat.models.steps import Step, StepKind, StepOutcome
from chat.modes.steps import begin, end

MOST_THOUGHT = 20_000  # characters that are kept of one thought


class Thinking:
    """The thought before one reply. It is told when it begins and when it is over, since it is folded meanwhile."""

    def __init__(self, live: LiveAnswer) -> None:
        self._live, self._text = live, ""
        self._step: Step | None = None

    async def add(self, thought: str) -> None:
        if self._step is None and (self._text + thought).strip():
            self._step = await in_thread(_begin, self._live)
        if len(self._text) < MOST_THOUGHT:
            self._text += thought

    async def close(self) -> None:
        """The answer begins, or something is called. Twice does nothing more."""
        step, self._step = self._step, None
        if step is not None:
            step.text, self._text = self._text.strip()[:MOST_THOUGHT], ""
            await in_thread(end, self._live, step, StepOutcome.THOUGHT)


def _begin(live: LiveAnswer) -> Step:
    Message.objects.filter(pk=live.pk).update(has_thoughts=True)
    return begin(live, StepKind.THOUGHT)
