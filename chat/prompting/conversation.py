"""Conversation as input of a prompt: lines with their speakers, pictures, and the summary of older messages.

A stored chat is loaded by ``conversation_of``; endpoints without a stored chat build one from their request.
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

MOST = 6  # of a conversation that are sent with one prompt: the newest

ByMessage = dict[int, tuple[Picture, ...]]


def pictures_of(messages: Sequence[Message], there: DocumentQuerySet, *, shows: bool) -> ByMessage:
    """Return the pictures of each message by its key, newest messages first. Beyond ``MOST``, and without ``shows``,
    they are only named.

    Only documents that are ``there`` are considered. No query if no message names a document, else two.
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


LOOKED_AT = 200  # earlier messages, at most, however short


@dataclass(frozen=True)
class Line:
    """``key``: of the stored message, or its number in what was sent; they grow along the conversation."""

    role: Literal["user", "assistant"]
    content: str
    key: int
    pictures: tuple[Picture, ...] = ()
    is_imported: bool = False  # under somebody's name, as its content says

    @property
    def speaker(self) -> Speaker:
        if self.is_imported:
            return Speaker.IMPORT
        return Speaker.PERSON if self.role == "user" else Speaker.MODEL


@dataclass(frozen=True)
class Conversation:
    """``earlier``: newest first, none of them blank, and one more than ``LOOKED_AT`` where there are more."""

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
    """Return the messages that are current, may be ``shown``, and are not in the ``compaction`` that replaces the
    older part. One query, and two more if messages name documents. Without ``shows_pictures`` these are only named.
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
