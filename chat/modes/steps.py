"""The steps of deep thinking: each stored and told to whoever follows the answer, never fatal."""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from chat.answers.answer_state import message_channel
from chat.answers.live import LiveAnswer
from chat.models import Message
from chat.models.steps import Step, StepOutcome
from chat.modes.shown_steps import event_of
from memoryhub import events

logger = logging.getLogger(__name__)


def begin(live: LiveAnswer, kind: str, **given: Any) -> Step:
    """A step that runs from now on. Blocks."""
    step = Step(message_id=live.pk, kind=kind, **given)
    _store(live, step)
    return step


def end(live: LiveAnswer, step: Step, outcome: str, *, error: str = "") -> None:
    """What the step came to, with what was written into it meanwhile. Blocks."""
    step.outcome, step.error = outcome, error[:200]
    step.finished_at = timezone.now()
    _store(live, step)


def tell(live: LiveAnswer, step: Step) -> None:
    """How far it is, with what was written into it meanwhile. Blocks."""
    _store(live, step)


def _store(live: LiveAnswer, step: Step) -> None:
    try:
        with transaction.atomic():
            step.save()
            events.publish(message_channel(live.public_id), "grown")
    except DatabaseError:  # away for a moment, or its chat was deleted meanwhile
        logger.warning("A step of an answer could not be stored")
    live.set_event("step", step.public_id, event_of(step))


def close_unfinished(answer: Message) -> None:
    """The answer is over: a step that still runs was stopped with it."""
    running = Step.objects.filter(message=answer, outcome="")
    running.update(outcome=StepOutcome.STOPPED, finished_at=timezone.now())
