"""What people do to chats and messages. Each checks the right of ``by`` that its door cannot know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from chat.answers.live import live_answer
from chat.models import MESSAGE_LENGTH, TITLE_LENGTH, Chat, Message, MessageRole, MessageStatus
from chat.models.steps import Mode, StepKind, StepOutcome
from chat.modes import require_mode
from chat.prompting.text import title_from
from chat.turns import runner, versions
from chat.turns.chosen_model import chosen_for_chat
from memories.consent import memory_on
from memories.recalling.recall import expect
from memories.writing.drafts import UNSTORABLE
from memoryhub import events
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from workspaces.access import role_in
from workspaces.audit import Verb, record
from workspaces.connections.choice import choose_connection
from workspaces.models import Agent, Role, User, Workspace
from workspaces.models.connection import Connection
from workspaces.throttles import spend


@dataclass(frozen=True)
class Turn:
    message: Message
    answer: Message


def create_chat(
    *,
    workspace: Workspace,
    by: User,
    now: datetime,
    title: str = "",
    agent: Agent | None = None,
    connection: Connection | None = None,
    memory_enabled: bool | None = None,
    is_private: bool = False,
    is_temporary: bool = False,
) -> Chat:
    chat = Chat.objects.create(
        workspace=workspace,
        created_by=by,
        title=_clean_title(title),
        agent=agent,
        connection=connection,
        memory_enabled=memory_enabled,
        is_private=is_private,
        is_temporary=is_temporary,
        created_at=now,
        active_at=now,
    )
    announce(chat)
    return chat


def rename_chat(chat: Chat, *, title: str, by: User) -> Chat:
    title = _clean_title(title)
    if not title:
        raise Invalid(
            "Give the chat a title.", fields={"title": f"is required, 1 to {TITLE_LENGTH} characters"}
        )
    chat.title = title
    chat.save(update_fields=["title"])
    announce(chat)
    return chat


def set_chat_memory(chat: Chat, *, enabled: bool | None, by: User) -> Chat:
    """The Memory chip of this chat; None goes back to the person's default."""
    chat.memory_enabled = enabled
    chat.save(update_fields=["memory_enabled"])
    return chat


def set_agent(chat: Chat, *, agent: Agent | None, by: User) -> Chat:
    """Which assistant of its workspace answers from now on; None: none in particular."""
    chat.agent = agent
    chat.save(update_fields=["agent"])
    return chat


def set_connection(chat: Chat, *, connection_id: str | None, by: User) -> Chat:
    """Which model answers from now on; None or nothing: the workspace's. Invalid for one that cannot be chosen here."""
    chosen = choose_connection(chat.workspace, connection_id, by=by) if connection_id else None
    chat.connection = chosen
    chat.save(update_fields=["connection"])
    return chat


def set_private(chat: Chat, *, is_private: bool, by: User) -> Chat:
    if chat.created_by_id != by.pk:
        raise Forbidden("Only the person who began a chat can make it private or shared.")
    with transaction.atomic():
        announce(chat)  # still as it was: the pages of those who could see it look again, too
        chat.is_private = is_private
        chat.save(update_fields=["is_private"])
        announce(chat)
    return chat


def delete_chat(chat: Chat, *, by: User, now: datetime) -> Chat:
    """Soft. Its memories stay: they belong to the workspace. Twice does nothing more."""
    require_own(chat, by)
    with transaction.atomic():
        if Chat.objects.filter(pk=chat.pk, deleted_at=None).update(deleted_at=now):
            record(Verb.CHAT_DELETED, by=by, workspace=audit_place(chat), target=chat.public_id)
    chat.deleted_at = chat.deleted_at or now
    announce(chat)
    return chat


def audit_place(chat: Chat) -> Workspace | None:
    """Whose owners are told what became of the chat: nobody's, if only its creator may see it."""
    return None if chat.is_private or chat.is_temporary else chat.workspace


def restore_chat(chat: Chat, *, by: User, now: datetime) -> Chat:
    require_own(chat, by)
    with transaction.atomic():
        if not Chat.objects.filter(pk=chat.pk).update(deleted_at=None):
            raise NotFound("This chat was forgotten for good in the meantime.")
        if chat.deleted_at is not None:
            record(Verb.CHAT_RESTORED, by=by, workspace=audit_place(chat), target=chat.public_id)
    chat.deleted_at = None
    announce(chat)
    return chat


def begin_turn(
    chat: Chat,
    *,
    content: str,
    by: User,
    now: datetime,
    memory_enabled: bool | None = None,
    in_place_of: Message | None = None,
    mode: str = Mode.CHAT,
) -> Turn:
    """Store the message and an empty answer, and set the model to work once that is committed.

    ``memory_enabled`` speaks for this turn alone and wins over the chat's chip. ``in_place_of`` is a question that is
    set aside with all that followed it. Raises Invalid for a blank or too long message or a mode that the model
    cannot do, TooManyRequests, and Conflict while another answer is being written.
    """
    content = _clean_message(content)
    if mode != Mode.CHAT:
        require_mode(mode, chosen_for_chat(chat, by).model.capabilities)
    spend("turns", by, now=now)
    reap_abandoned(chat, now=now)
    enabled = memory_on(by, chat.memory_enabled if memory_enabled is None else memory_enabled)
    enabled = enabled and not chat.is_temporary
    if enabled:
        expect(content, now=now)
    try:
        with transaction.atomic():
            message = Message.objects.create(
                chat=chat, role=MessageRole.USER, author=by, content=content, created_at=now, finished_at=now
            )
            if in_place_of is not None:
                versions.take_the_place_of(in_place_of, message, by=by, now=now)
            answer = _empty_answer(message, memory_enabled=enabled, mode=mode, now=now)
            if not chat.title:
                chat.title = title_from(content)
                Chat.objects.filter(pk=chat.pk, title="").update(title=chat.title)  # unless just named
            chat.active_at = now
            if not Chat.objects.filter(pk=chat.pk).update(active_at=now):
                raise NotFound("This chat was forgotten in the meantime.")
            announce(chat)
            transaction.on_commit(lambda: runner.start(answer.pk, answer.attempt, by.pk))
    except IntegrityError:
        raise Conflict(
            "An answer is still being written in this chat. Stop it or wait.", code="busy"
        ) from None
    return Turn(message, answer)


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
        "error": "The server stopped in the middle of this answer. Your message is saved.",
        "finished_at": now,
    }


def announce(chat: Chat) -> None:
    """Tell open pages that the list of chats changed; a private chat concerns its creator's pages alone."""
    hidden = chat.is_private or chat.is_temporary
    channel = f"user:{chat.created_by.public_id}" if hidden else f"workspace:{chat.workspace.public_id}"
    data = {"workspace_id": chat.workspace.public_id, "chat_id": chat.public_id}
    events.publish(channel, "chat.changed", data)


def require_own(chat: Chat, by: User) -> None:
    if chat.created_by_id != by.pk and role_in(by, chat.workspace) != Role.OWNER:
        raise Forbidden("Only the person who began a chat or an owner of the workspace can delete it.")


def _clean_title(title: str) -> str:
    title = " ".join(UNSTORABLE.sub("", title).split())
    if len(title) > TITLE_LENGTH:
        raise Invalid(
            "The title is too long.", fields={"title": f"may have at most {TITLE_LENGTH} characters"}
        )
    return title


def _clean_message(content: str) -> str:
    if UNSTORABLE.search(content):
        raise Invalid(
            "The message has a character that cannot be stored.", fields={"content": "has a NUL character"}
        )
    content = content.replace("\r\n", "\n").strip()
    if not content:
        raise Invalid("Write a message first.", fields={"content": "is required"})
    if len(content) > MESSAGE_LENGTH:
        raise Invalid(
            f"The message is too long: {len(content):,} characters, at most {MESSAGE_LENGTH:,}.",
            fields={"content": f"may have at most {MESSAGE_LENGTH:,} characters"},
        )
    return content
