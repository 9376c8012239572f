"""The text that extraction reads: the person's words and the answer, without recalled or system text."""

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
from chat.prompting.prompt_text import excerpt_around, imported_label, name_of, said_by_several
from chat.prompting.provenance import provenance_until
from chat.turns.client_turns import PREFIX, load_passing
from memories.judging.extraction.speaker import Source
from memories.models import SourceType
from memories.writing.drafts_from_turns import TurnText
from memoryhub.llm.base import Speaker
from workspaces.models import User

PLACE = ("connection", "workspace__connection")
EARLIER = 4  # preceding messages given as context: two turns
THOUGHT = (SourceType.AUTO_DEEP_THINK, SourceType.AUTO_RESEARCH)


def load_turn(public_id: str, source_type: str, by: User | None) -> TurnText | None:
    """Return the text to extract from. None if the chat is deleted or temporary, or the answer was replaced.

    ``public_id`` names an answer, a client's turn, a tool call or a summary, depending on ``source_type``.
    """
    if public_id.startswith(PREFIX):
        return load_passing(public_id)
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
    return TurnText(
        (("user", question.content), ("assistant", answer.content)),
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
    return TurnText(
        ((message.role, message.content),),
        message.public_id,
        excerpt_around(message),
        message.chat.is_private,
        is_personal=bool(message.personal),
        stays_here=message.stays_here,
        **_place(message.chat),
    )


def _tool_output(call_id: str, by: User | None) -> TurnText | None:
    """Return the text of a tool call's output; None if its chat is deleted or temporary, or its answer was replaced."""
    calls = ToolCall.objects.filter(message__chat__deleted_at=None, message__chat__is_temporary=False)
    calls = calls.filter(message__superseded_by=None, public_id=call_id)
    place = (f"message__chat__{name}" for name in PLACE)
    call = calls.select_related(*place, "message__reply_to").first()
    if call is None or call.message.reply_to is None:
        return None
    speaker = Speaker.MODEL if call.outcome == ToolOutcome.NOTED else Speaker.TOOL
    output = Source(speaker, call.output, call.public_id)
    return _output(call.output, call.message, by, output, source=call.message.reply_to)


def _summary(compaction_id: str, by: User | None) -> TurnText | None:
    """Return the text of a summary; None if its chat is deleted or temporary, or its last message was replaced."""
    summaries = Compaction.objects.filter(chat__deleted_at=None, chat__is_temporary=False)
    summaries = summaries.filter(upto__superseded_by=None, public_id=compaction_id)
    compaction = summaries.select_related(*(f"chat__{name}" for name in PLACE), "upto").first()
    if compaction is None:
        return None
    compaction.upto.chat = compaction.chat
    if compaction.is_marked:
        summarised = Message.objects.filter(chat=compaction.chat, pk__lte=compaction.upto_id)
        for each in summarised.marked():
            compaction.upto.personal = compaction.upto.personal or each.personal
            compaction.upto.stays_here = compaction.upto.stays_here or each.stays_here
    return _output(compaction.summary, compaction.upto, by, source=compaction.upto)


def _output(text: str, until: Message, by: User | None, *extra_sources: Source, source: Message) -> TurnText:
    """Return the text that a model or tool produced, for the extraction of memories.

    ``until``: the message at which it was produced; all that the model had seen by then counts as its sources, in
    addition to ``extra_sources``. ``source``: the message that the memories will link to, without an excerpt.
    """
    chat = until.chat
    return TurnText(
        (("assistant", text),),
        source.public_id,
        "",
        chat.is_private or bool(until.personal),
        is_output=True,
        provenance=provenance_until(until, by).plus(*extra_sources),
        stays_here=until.stays_here,
        **_place(chat),
    )


def _said_before(question: Message) -> str:
    """Return the public id of the previous user message if it has the same author and import; else an empty string."""
    user_messages = question.chat.messages.current().filter(pk__lt=question.pk, role=MessageRole.USER)
    before = user_messages.order_by("-pk").only("author_id", "public_id", "imported_at").first()
    if before is None or before.author_id != question.author_id or before.imported_at != question.imported_at:
        return ""
    return before.public_id


def _earlier(question: Message, *, is_personal: bool) -> tuple[tuple[str, str], ...]:
    """Return (role, text) of the messages before the question, oldest first; personal ones only if ``is_personal``."""
    before = question.chat.messages.current().filter(pk__lt=question.pk, stays_here=False)
    before = before.exclude(content="").order_by("-pk")
    if not is_personal:
        before = before.filter(personal=PersonalUse.NONE)
    known = list(before.select_related("author", "imported_by")[:EARLIER])[::-1]
    user_messages = [message for message in [*known, question] if message.role == MessageRole.USER]
    several = said_by_several(user_messages) or any(message.is_imported for message in user_messages)
    return tuple(
        (message.role, f"{imported_label(message) or name_of(message.author)}: {message.content}")
        if message.role == MessageRole.USER and several
        else (message.role, message.content)
        for message in known
    )


def _place(chat: Chat) -> dict[str, Any]:
    """Return the ``TurnText`` fields that determine which model extracts: the chat's connection and workspace."""
    return {"connection": chat.connection, "workspace": chat.workspace}


def _messages() -> MessageQuerySet:
    return Message.objects.filter(chat__deleted_at=None, chat__is_temporary=False).select_related(
        "reply_to__chat", "reply_to__author", *(f"chat__{name}" for name in PLACE)
    )
