"""What extraction may read of a chat: the person's words and the answer, nothing recalled, no system text."""

from __future__ import annotations

from django.db.models import QuerySet

from chat.excerpts import excerpt_around
from chat.models import Message, MessageRole
from memories.extraction.turns import TurnText


def load_turn(answer_id: str) -> TurnText | None:
    """The turn that this answer ended; None when its chat is deleted or temporary."""
    answer = _messages().filter(public_id=answer_id, role=MessageRole.ASSISTANT).first()
    if answer is None or answer.reply_to is None:
        return None
    question = answer.reply_to
    said = (("user", question.content), ("assistant", answer.content))
    return TurnText(said, question.public_id, excerpt_around(question), answer.chat.is_private)


def load_message(message_id: str) -> TurnText | None:
    message = _messages().filter(public_id=message_id).first()
    if message is None:
        return None
    said = ((message.role, message.content),)
    return TurnText(said, message.public_id, excerpt_around(message), message.chat.is_private)


def _messages() -> QuerySet[Message]:
    return Message.objects.filter(chat__deleted_at=None, chat__is_temporary=False).select_related(
        "reply_to__chat", "chat"
    )
