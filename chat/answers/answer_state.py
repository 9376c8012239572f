"""How an answer stands: being written, asked to stop, abandoned by its process."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from chat.answers.live import live_answer
from chat.models import Chat, Message, MessageStatus
from chat.models.steps import StepKind, StepOutcome
from memoryhub.kept import kept
from workspaces.models import User


def message_channel(answer_id: str) -> str:
    return f"message:{answer_id}"


def stop_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Stop writing; the text so far is kept. Whichever process writes it notices within a second."""
    Message.objects.filter(pk=answer.pk, status=MessageStatus.STREAMING).update(stop_requested=True)
    live = live_answer(answer.public_id)
    if live is not None:
        live.request_stop()
    reap_abandoned(answer.chat, now=now)
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
    ).update(**as_interrupted(is_whole=answer.steps.filter(kind=StepKind.CHECK).exists(), now=now))
    answer.steps.filter(outcome="").update(outcome=StepOutcome.STOPPED, finished_at=now)
    return bool(closed)


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
