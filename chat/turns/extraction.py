"""The text of a chat that extraction reads: the person's words and the answer, without recalled or system text."""

from __future__ import annotations

from typing import Any

from chat.models import (
    Chat,
    Compaction,
    Message,
    MessageQuerySet,
    MessageRole,
    PersonalUse,
    ToolCall,
    ToolOutcome,
)
from chat.prompting.labels import excerpt_around, imported_label, name_of
from chat.prompting.provenance import provenance_until
from chat.turns import program_turns
from memories.judging.extraction.provenance import Source
from memories.models import SourceType
from memories.writing.mined import TurnText
from memoryhub.llm.base import Speaker
from workspaces.models import User

PLACE = ("connection", "workspace__connection")
EARLIER = 4  # preceding messages given as context: two turns
THOUGHT = (SourceType.AUTO_DEEP_THINK, SourceType.AUTO_RESEARCH)


def load_turn(public_id: str, source_type: str, by: User | None) -> TurnText | None:
    """Return the text from which memories are extracted: the turn, tool output or summary that ``source_type``
    names.

    ``by`` is the person whose turn it is. None if the chat is deleted or temporary, or if the answer was replaced.
    """
    if public_id.startswith(program_turns.PREFIX):
        return program_turns.load_passing(public_id)
    if source_type == SourceType.MODEL:
        return _tool_output(public_id, by)
    if source_type == SourceType.AUTO_COMPACTION:
        return _summary(public_id, by)
    answer = _messages().current().filter(public_id=public_id, role=MessageRole.ASSISTANT).first()
    if answer is None or answer.reply_to is None:
        return None
    question = answer.reply_to
    if source_type in THOUGHT:
        web = answer.runs.filter(web_urls__len__gt=0).first()
        strangers = [Source(Speaker.WEB, None, web.public_id)] if web else []
        return _output(answer.content, answer, by, *strangers, source=question)
    said = (("user", question.content), ("assistant", answer.content))
    return TurnText(
        said,
        question.public_id,
        excerpt_around(question),
        answer.chat.is_private,
        said_by=None if question.is_imported else question.author,
        said_at=question.created_at,
        said_before=_said_before(question),
        earlier=_earlier(question, is_personal=bool(answer.personal)),
        is_personal=bool(answer.personal),
        provenance=provenance_until(answer, by),
        stays_here=answer.stays_here,
        **_place(answer.chat),
    )


def load_message(message_id: str, reader: User | None) -> TurnText | None:
    """Return the text of a message for extraction; None if ``reader`` may not see the message."""
    if reader is None:
        return None
    seen = _messages().filter(chat__in=Chat.objects.visible_to(reader)).readable_by(reader)
    message = seen.filter(public_id=message_id).first()
    if message is None:
        return None
    said = ((message.role, message.content),)
    chat = message.chat
    return TurnText(
        said,
        message.public_id,
        excerpt_around(message),
        chat.is_private,
        is_personal=bool(message.personal),
        stays_here=message.stays_here,
        **_place(chat),
    )


def _tool_output(call_id: str, by: User | None) -> TurnText | None:
    """Return the text of a stored tool call's output; None if its chat is deleted or temporary, or its answer was
    replaced.
    """
    kept = {"message__chat__deleted_at": None, "message__chat__is_temporary": False}
    calls = ToolCall.objects.filter(message__superseded_by=None, **kept)
    call = (
        calls.select_related(*(f"message__chat__{name}" for name in PLACE), "message__reply_to")
        .filter(public_id=call_id)
        .first()
    )
    if call is None or call.message.reply_to is None:
        return None
    speaker = Speaker.MODEL if call.outcome == ToolOutcome.NOTED else Speaker.TOOL
    output = Source(speaker, call.output, call.public_id)
    return _output(call.output, call.message, by, output, source=call.message.reply_to)


def _summary(compaction_id: str, by: User | None) -> TurnText | None:
    """Return the text of a stored summary; None if its chat is deleted or temporary, or its last message was
    replaced.
    """
    summaries = Compaction.objects.filter(chat__deleted_at=None, chat__is_temporary=False)
    summaries = summaries.filter(upto__superseded_by=None)
    found = (
        summaries.select_related(*(f"chat__{name}" for name in PLACE), "upto")
        .filter(public_id=compaction_id)
        .first()
    )
    if found is None:
        return None
    found.upto.chat = found.chat
    marked = (
        Message.objects.filter(chat=found.chat, pk__lte=found.upto_id).marked() if found.is_marked else ()
    )
    for each in marked:
        found.upto.personal = found.upto.personal or each.personal
        found.upto.stays_here = found.upto.stays_here or each.stays_here
    return _output(found.summary, found.upto, by, source=found.upto)


def _output(text: str, until: Message, by: User | None, *said: Source, source: Message) -> TurnText:
    """Return the text of a model output, without an excerpt, since its sources are spread over the chat.

    ``said`` is the author of the output; the provenance also includes all that the model had seen up to ``until``. The
    output is personal if its chat is private or the answer used personal data.
    """
    chat = until.chat
    return TurnText(
        (("assistant", text),),
        source.public_id,
        "",
        chat.is_private or bool(until.personal),
        is_output=True,
        provenance=provenance_until(until, by).plus(*said),
        stays_here=until.stays_here,
        **_place(chat),
    )


def _said_before(question: Message) -> str:
    """Return the public id of the person's previous message, if the same person wrote it; else an empty string."""
    asked = question.chat.messages.current().filter(pk__lt=question.pk, role=MessageRole.USER)
    before = asked.order_by("-pk").values_list("author", "public_id", "imported_at").first()
    same = before is not None and before[0] == question.author_id and before[2] == question.imported_at
    return before[1] if before is not None and same else ""


def _earlier(question: Message, *, is_personal: bool) -> tuple[tuple[str, str], ...]:
    """Return the preceding messages, oldest first. Personal answers are included only if this turn is personal, because
    then its memories are personal too.

    If several people wrote, each of their messages begins with the name of its author or importer.
    """
    before = question.chat.messages.current().filter(pk__lt=question.pk).exclude(content="").order_by("-pk")
    before = before.filter(stays_here=False)
    if not is_personal:
        before = before.filter(personal=PersonalUse.NONE)
    known = list(before.select_related("author", "imported_by")[:EARLIER])[::-1]
    said = [message for message in [*known, question] if message.role == MessageRole.USER]
    several = len({message.author for message in said}) > 1 or any(message.is_imported for message in said)
    return tuple(
        (message.role, f"{imported_label(message) or name_of(message.author)}: {message.content}")
        if message.role == MessageRole.USER and several
        else (message.role, message.content)
        for message in known
    )


def _place(chat: Chat) -> dict[str, Any]:
    """Return the connection and workspace that determine the model."""
    return {"connection": chat.connection, "workspace": chat.workspace}


def _messages() -> MessageQuerySet:
    return Message.objects.filter(chat__deleted_at=None, chat__is_temporary=False).select_related(
        "reply_to__chat", "reply_to__author", *(f"chat__{name}" for name in PLACE)
    )
