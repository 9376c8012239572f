"""How an answer stands: being written, asked to stop, abandoned by its process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from chat.answers.live import live_answer
from chat.models import Chat, Message, MessageStatus
from chat.models.chats import STOPPED_AFTER
from chat.models.steps import StepKind, StepOutcome
from memoryhub.kept import kept
from workspaces.models import User

STOP_POLL = 0.1  # seconds between looks at an answer that another process is to stop


def message_channel(answer_id: str) -> str:
    return f"message:{answer_id}"


def stop_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Stop writing; the text so far is kept. Whichever process writes it notices within a second.

    Where another process should be writing, wait until it has stopped, or is given up: three seconds after its last
    sign of life at most. So the answer is over when this returns, and another can begin.
    """
    Message.objects.filter(pk=answer.pk, status=MessageStatus.STREAMING).update(stop_requested=True)
    live = live_answer(answer.public_id)
    if live is not None:
        live.request_stop()
        return _as_stored(answer)
    began = time.monotonic()
    while _as_stored(answer).status == MessageStatus.STREAMING:
        waited = timedelta(seconds=time.monotonic() - began)
        if close_abandoned(answer, now=now + waited) or waited > STOPPED_AFTER:
            return _as_stored(answer)
        time.sleep(STOP_POLL)
    return answer


def _as_stored(answer: Message) -> Message:
    answer.refresh_from_db()
    return answer


def reap_abandoned(chat: Chat, *, now: datetime) -> int:
    """Close answers whose process is gone: the text so far stays, with a reason and a Retry. How many."""
    streaming = chat.messages.filter(status=MessageStatus.STREAMING)
    return sum(close_abandoned(answer, now=now) for answer in streaming)


def close_abandoned(answer: Message, *, now: datetime) -> bool:
    if not answer.is_abandoned(now):
        return False
    closed = Message.objects.filter(
        pk=answer.pk, status=MessageStatus.STREAMING, attempt=answer.attempt, beat_at=answer.beat_at
    ).update(**_as_abandoned(answer, now))
    answer.steps.filter(outcome="").update(outcome=StepOutcome.STOPPED, finished_at=now)
    return bool(closed)


def show_abandoned(answers: Iterable[Message], *, now: datetime) -> None:
    """Let abandoned answers read as they will be closed, for a reader that writes nothing."""
    for answer in answers:
        if answer.is_abandoned(now):
            for name, value in _as_abandoned(answer, now).items():
                setattr(answer, name, value)


def _as_abandoned(answer: Message, now: datetime) -> dict[str, Any]:
    is_whole = answer.steps.filter(kind=StepKind.CHECK).exists()
    if answer.stop_requested and not is_whole:
        return {"status": MessageStatus.STOPPED, "finished_at": now}
    return as_interrupted(is_whole=is_whole, now=now)


def as_interrupted(*, is_whole: bool, now: datetime) -> dict[str, Any]:
    """How an answer is closed whose process ended: one that was only being checked is done."""
    if is_whole:
        return {"status": MessageStatus.DONE, "finished_at": now}
    return {
        "status": MessageStatus.FAILED,
        "error_code": "interrupted",
        "error": kept("The server stopped in the middle of this answer.", "Your message is saved."),
        "finished_at": now,
    }
