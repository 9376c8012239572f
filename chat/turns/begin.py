"""How a turn begins: the message and an empty answer are stored, and the model is set to work."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.answers.answer_state import reap_abandoned
from chat.chats.actions import announce
from chat.chats.titles import title_from
from chat.models import MESSAGE_LENGTH, Chat, Message, MessageRole, MessageStatus
from chat.models.steps import Mode
from chat.modes.registry import require_mode
from chat.turns import earlier_versions, runner
from chat.turns.answer_sources import publish_drafts, require_documents
from chat.turns.chosen_model import chosen_for_chat, require_paid
from memories.consent import memory_on
from memories.recalling.recall import expect
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Conflict, Invalid, NotFound
from memoryhub.languages import grouped
from workspaces.models import User
from workspaces.quotas import spend


@dataclass(frozen=True)
class Turn:
    message: Message
    answer: Message


def begin_turn(
    chat: Chat,
    *,
    content: str,
    by: User,
    now: datetime,
    memory_enabled: bool | None = None,
    in_place_of: Message | None = None,
    mode: str = Mode.CHAT,
    documents: Sequence[str] | None = None,
) -> Turn:
    """Store the message and an empty answer, and set the model to work once that is committed.

    ``memory_enabled`` speaks for this turn alone and wins over the chat's chip. ``in_place_of`` is a question that is
    set aside with all that followed it. ``documents``: the ids of those that the answer may draw on; None: all of the
    workspace and their own. Raises Invalid for a blank or too long message, a mode that the model cannot do or a
    document that is not here, TooManyRequests, BudgetReached, and Conflict while another answer is being written.
    """
    content = _clean_message(content)
    require_documents(documents, chat, by)
    require_mode(mode, lambda: chosen_for_chat(chat, by).model.capabilities)
    require_paid(chat, by, now=now)
    spend("turns", by, now=now)
    reap_abandoned(chat, now=now)
    enabled = memory_on(by, chat.memory_enabled if memory_enabled is None else memory_enabled)
    enabled = enabled and not chat.is_temporary
    if enabled:
        expect(content, now=now)
    try:
        with transaction.atomic():
            documents = publish_drafts(documents, chat, by, now=now)
            message = Message.objects.create(
                chat=chat,
                role=MessageRole.USER,
                author=by,
                content=content,
                only_documents=documents,
                created_at=now,
                finished_at=now,
            )
            if in_place_of is not None:
                earlier_versions.take_the_place_of(in_place_of, message, by=by, now=now)
            answer = _empty_answer(message, memory_enabled=enabled, mode=mode, now=now)
            _say_active(chat, content, now)
            transaction.on_commit(lambda: runner.start(answer.pk, answer.attempt, by.pk))
    except IntegrityError:
        raise _busy() from None
    return Turn(message, answer)


def _say_active(chat: Chat, content: str, now: datetime) -> None:
    """In the lists of chats: it is the newest, and is called after its first message unless somebody named it."""
    if not chat.title:
        chat.title = title_from(content)
        Chat.objects.filter(pk=chat.pk, title="").update(title=chat.title)  # unless just named
    chat.active_at = now
    if not Chat.objects.filter(pk=chat.pk).update(active_at=now):
        raise NotFound(_("This chat has since been forgotten."))
    announce(chat)


def require_rest(chat: Chat, *, now: datetime) -> None:
    """Conflict while an answer is being written: nothing is begun that could not be sent."""
    reap_abandoned(chat, now=now)
    if chat.messages.filter(status=MessageStatus.STREAMING).exists():
        raise _busy()


def _busy() -> Conflict:
    return Conflict(_("An answer is still being written in this chat. Stop it or wait."), code="busy")


def _empty_answer(question: Message, *, memory_enabled: bool, mode: str, now: datetime) -> Message:
    return Message.objects.create(
        chat=question.chat,
        role=MessageRole.ASSISTANT,
        status=MessageStatus.STREAMING,
        reply_to=question,
        memory_enabled=memory_enabled,
        mode=mode,
        created_at=now,
        beat_at=now,
    )


def _clean_message(content: str) -> str:
    if UNSTORABLE.search(content):
        raise Invalid(
            _("The message has a character that cannot be stored."),
            fields={"content": _("has a NUL character")},
        )
    content = content.replace("\r\n", "\n").strip()
    if all(unicodedata.category(sign) in {"Cc", "Cf", "Zs"} for sign in content):  # nothing that is seen
        raise Invalid(_("Write a message first."), fields={"content": _("is required")})
    if len(content) > MESSAGE_LENGTH:
        raise Invalid(
            _("The message is too long: %(length)s characters, at most %(message_length)s.")
            % {"length": grouped(len(content)), "message_length": grouped(MESSAGE_LENGTH)},
            fields={"content": _("may have at most %s characters") % grouped(MESSAGE_LENGTH)},
        )
    return content
