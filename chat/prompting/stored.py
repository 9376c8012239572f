"""The conversation of a stored chat, up to a question."""

from __future__ import annotations

from typing import Literal

from chat.chats.personal_memories import PromptPolicy
from chat.models import Compaction, Message, MessageRole
from chat.prompting.conversation import LOOKED_AT, Conversation, Line
from chat.prompting.labels import said_by_several, text_of, with_labels
from chat.prompting.prompt_pictures import ByMessage, pictures_of
from workspaces.models import Document
from workspaces.policy import Reach, in_reach


def conversation_of(
    question: Message,
    compaction: Compaction | None,
    *,
    shown: PromptPolicy,
    reach: Reach,
    shows_pictures: bool = True,
) -> Conversation:
    """What is not set aside, may be ``shown``, and is not in the ``compaction`` that stands for the older part. One
    query, and two more where messages name documents. Without ``shows_pictures`` these are only named.
    """
    earlier = Message.objects.filter(
        chat_id=question.chat_id, pk__lt=question.pk, pk__gt=compaction.upto_id if compaction else 0
    )
    said = with_labels(shown.of(earlier).current().exclude(content=""), "only_documents")
    newest = list(said.order_by("-pk")[: LOOKED_AT + 1])
    there = in_reach(Document.objects.live(), question.chat.workspace, shown.user, reach)
    pictures = pictures_of([question, *newest], there, shows=shows_pictures)
    several = said_by_several([question, *newest])
    return Conversation(
        question=_line(question, pictures, names_people=several),
        earlier=[_line(message, pictures, names_people=several) for message in newest],
        agent=question.chat.agent,
        summary=compaction.summary if compaction else "",
    )


def _line(message: Message, pictures: ByMessage, *, names_people: bool) -> Line:
    role: Literal["user", "assistant"] = "user" if message.role == MessageRole.USER else "assistant"
    shown = pictures.get(message.pk, ())
    if role == "assistant":  # without a label, which the model would write into its next answer
        return Line(role, message.content, message.pk)
    return Line(
        role, text_of(message, names_people=names_people), message.pk, shown, is_imported=message.is_imported
    )
