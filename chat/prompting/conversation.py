"""The conversation as input of a prompt: lines with their speakers, pictures, and the summary of older messages.

``conversation_of`` loads a stored chat; endpoints without a stored chat build a conversation from their request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chat.chats.personal_memories import PromptPolicy
from chat.models import Compaction, Message, MessageRole
from chat.prompting.labels import said_by_several, text_of, with_labels
from chat.prompting.text import escape
from memoryhub.llm.base import Picture, Speaker
from workspaces.models import Agent, Document, DocumentPicture, DocumentQuerySet
from workspaces.policy import Reach, in_reach

MOST = 6  # pictures sent with one prompt, the newest

ByMessage = dict[int, tuple[Picture, ...]]


def pictures_of(messages: Sequence[Message], there: DocumentQuerySet, *, shows: bool) -> ByMessage:
    """Return the pictures of each message by message key. ``messages`` are ordered newest first. Pictures beyond
    ``MOST``, or all if ``shows`` is False, have no image data and are only named.

    Only documents in ``there`` are considered. No query if no message names a document, else two.
    """
    wanted = {each for message in messages for each in message.only_documents or ()}
    if not wanted:
        return {}
    drawable = DocumentPicture.objects.filter(document__in=there.filter(public_id__in=wanted))
    known = {each.document.public_id: each for each in drawable.select_related("document").defer("jpeg")}
    named = [known[each] for message in messages for each in message.only_documents or () if each in known]
    newest = {each.pk for each in list(dict.fromkeys(named))[: MOST if shows else 0]}
    drawn = dict(DocumentPicture.objects.filter(pk__in=newest).values_list("pk", "jpeg")) if newest else {}
    return {
        message.pk: tuple(
            _picture(row, bytes(drawn.get(row.pk, b"")))
            for each in message.only_documents or ()
            if (row := known.get(each))
        )
        for message in messages
    }


def _picture(row: DocumentPicture, jpeg: bytes) -> Picture:
    return Picture(f"Picture: {escape(row.document.title)}", jpeg, row.width, row.height)


LOOKED_AT = 200  # maximum number of earlier messages


@dataclass(frozen=True)
class Line:
    """A message of a conversation. ``key`` is the key of the stored message or its index in the request; keys
    increase.
    """

    role: Literal["user", "assistant"]
    content: str
    key: int
    pictures: tuple[Picture, ...] = ()
    is_imported: bool = False  # imported under the name of the author, as its content says

    @property
    def speaker(self) -> Speaker:
        if self.is_imported:
            return Speaker.IMPORT
        return Speaker.PERSON if self.role == "user" else Speaker.MODEL


@dataclass(frozen=True)
class Conversation:
    """A question and the messages before it. ``earlier`` is ordered newest first, has no blank lines, and has one line
    more than ``LOOKED_AT`` if there are more.
    """

    question: Line
    earlier: Sequence[Line] = ()
    agent: Agent | None = None
    summary: str = ""


def conversation_of(
    question: Message,
    compaction: Compaction | None,
    *,
    shown: PromptPolicy,
    reach: Reach,
    shows_pictures: bool = True,
) -> Conversation:
    """Return the conversation of a stored chat: the current messages that ``shown`` allows, without those that the
    ``compaction`` summarises. One query, and two more if messages name documents. Pictures are only named if
    ``shows_pictures`` is False.
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
    if role == "assistant":  # no label, since the model would copy it into its next answer
        return Line(role, message.content, message.pk)
    return Line(
        role, text_of(message, names_people=names_people), message.pk, shown, is_imported=message.is_imported
    )
