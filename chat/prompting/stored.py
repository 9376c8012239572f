"""The conversation of a stored chat, up to a question."""

from __future__ import annotations

from chat.models import Compaction, Message, MessageRole
from chat.prompting.conversation import LOOKED_AT, Conversation, Line


def conversation_of(question: Message, compaction: Compaction | None) -> Conversation:
    """What is not set aside and not in the ``compaction`` that stands for the older part. One query."""
    earlier = Message.objects.filter(
        chat_id=question.chat_id, pk__lt=question.pk, pk__gt=compaction.upto_id if compaction else 0
    )
    newest = earlier.current().exclude(content="").only("role", "content").order_by("-pk")[: LOOKED_AT + 1]
    return Conversation(
        question=_line(question),
        earlier=[_line(message) for message in newest],
        agent=question.chat.agent,
        summary=compaction.summary if compaction else "",
    )


def _line(message: Message) -> Line:
    return Line("user" if message.role == MessageRole.USER else "assistant", message.content, message.pk)
