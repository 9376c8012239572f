"""Actions on turns: begin, edit, retry, continue, and resume research after a plan review."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from chat.answers.state import CUT, reap_abandoned
from chat.chats.services import announce, title_from
from chat.models import MESSAGE_LENGTH, Chat, Message, MessageRole, MessageStatus
from chat.models.runs import Run, RunStatus
from chat.models.steps import Mode
from chat.modes.registry import or_plain, require_mode
from chat.prompting.short_term import retell
from chat.runs.services import resume_run
from chat.turns import runner, versions
from chat.turns.chosen_model import chosen_for_chat, require_paid
from chat.turns.documents import publish_drafts, require_documents, still_there
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
    """Store the message and an empty answer, and start the model when the transaction commits.

    ``memory_enabled`` overrides the chat's setting for this turn. ``in_place_of`` is a question to be replaced,
    together with all messages after it. ``documents`` are the ids of documents that the answer may use; None means all
    that the person may read here. Raises Invalid for a blank or too long message, a mode that the model does not
    support, or an unknown document; TooManyRequests; BudgetReached; and Conflict while another answer is being written.
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
                versions.take_the_place_of(in_place_of, message, by=by, now=now)
            answer = _empty_answer(message, memory_enabled=enabled, mode=mode, now=now)
            _say_active(chat, content, now)
            transaction.on_commit(lambda: runner.start(answer.pk, answer.attempt, by.pk))
    except IntegrityError:
        raise _busy() from None
    return Turn(message, answer)


def _say_active(chat: Chat, content: str, now: datetime) -> None:
    """Move the chat to the top of the lists, and name it after its first message unless it has a title. Raises NotFound
    if the chat has been deleted.
    """
    if not chat.title:
        chat.title = title_from(content)
        Chat.objects.filter(pk=chat.pk, title="").update(
            title=chat.title
        )  # unless a concurrent request has named it
    chat.active_at = now
    if not Chat.objects.filter(pk=chat.pk).update(active_at=now):
        raise NotFound(_("This chat has since been forgotten."))
    announce(chat)


def require_rest(chat: Chat, *, now: datetime) -> None:
    """Raise Conflict while an answer is being written in the chat."""
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
    if all(unicodedata.category(sign) in {"Cc", "Cf", "Zs"} for sign in content):  # no visible character
        raise Invalid(_("Write a message first."), fields={"content": _("is required")})
    if len(content) > MESSAGE_LENGTH:
        raise Invalid(
            _("The message is too long: %(length)s characters, at most %(message_length)s.")
            % {"length": grouped(len(content)), "message_length": grouped(MESSAGE_LENGTH)},
            fields={"content": _("may have at most %s characters") % grouped(MESSAGE_LENGTH)},
        )
    return content


def edit_message(
    message: Message,
    *,
    content: str,
    by: User,
    now: datetime,
    memory_enabled: bool | None = None,
    mode: str = "",
    documents: Sequence[str] | Literal["as before"] | None = "as before",
) -> Turn:
    """Replace the person's own earlier question and answer the new one, with the same mode and documents unless given.

    The old question and all messages after it become an earlier version. Memories extracted from them remain. Raises
    Forbidden for another person's message, and what ``begin_turn`` raises.
    """
    versions.require_editable(message, by)
    answered = message.answers.order_by("pk").last()
    return begin_turn(
        message.chat,
        content=content,
        by=by,
        now=now,
        memory_enabled=memory_enabled,
        mode=mode or _mode_as_before(answered, by),
        in_place_of=message,
        documents=still_there(message, by) if documents == "as before" else documents,
    )


def _mode_as_before(answered: Message | None, by: User) -> str:
    """Return the mode of the previous answer, or the chat mode if the current model does not support it."""
    if answered is None:
        return Mode.CHAT
    return or_plain(answered.mode, lambda: chosen_for_chat(answered.chat, by).model.capabilities)


def retry_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Write the last answer of a chat again. A complete or stopped answer is kept as an earlier version; a failed one
    is replaced. Raises Conflict if the message is not the last answer.
    """
    reap_abandoned(answer.chat, now=now)
    if answer.role != MessageRole.ASSISTANT or answer.reply_to_id is None:
        raise Conflict(_("Only an answer can be regenerated."))
    _require_last(answer)
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = memory_on(by, answer.chat.memory_enabled) and not answer.chat.is_temporary
    with transaction.atomic():
        versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        _require_last(locked)
        anew = _blank_anew(locked, now=now)
        anew.memory_enabled = enabled
        anew.save()
        if anew.pk != locked.pk:
            whole = Message.objects.filter(pk=locked.pk)
            versions.set_aside(whole, first=locked, by=anew, now=now)
            retell(answer.chat, now=now)
        announce(answer.chat)
        transaction.on_commit(lambda: runner.start(anew.pk, anew.attempt, by.pk))
    anew.chat = answer.chat
    return anew


def continue_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Continue the last answer of a chat, which was cut off at its length limit, in the same message. Raises Conflict
    if the answer was not cut off or is not the last.
    """
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = memory_on(by, answer.chat.memory_enabled) and not answer.chat.is_temporary
    with transaction.atomic():
        versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        if locked.status != MessageStatus.DONE or locked.error_code != CUT:
            raise Conflict(_("Only an answer that reached its length limit can be continued."))
        _require_last(locked)
        locked.chat, locked.memory_enabled = answer.chat, enabled
        stream_again(locked, by=by.pk, now=now)
    return locked


def stream_again(answer: Message, *, by: int, now: datetime) -> None:
    """Start a new attempt that continues the answer, for the user with the key ``by``. The caller has locked the answer
    and checked that it is the last of its chat.
    """
    answer.attempt += 1
    _set_streaming(answer, now=now)
    answer.save()
    announce(answer.chat)
    transaction.on_commit(lambda: runner.start(answer.pk, answer.attempt, by))


def is_last(answer: Message) -> bool:
    last: int | None = answer.chat.messages.current().aggregate(last=Max("pk"))["last"]
    return last == answer.pk


def _require_last(answer: Message) -> None:
    if not is_last(answer):
        raise Conflict(_("Only the last answer in a chat can be regenerated."))


def _blank_anew(answer: Message, *, now: datetime) -> Message:
    """Return an unsaved empty answer: the same row, or a new row if the old text is kept as a version."""
    if answer.status in (MessageStatus.DONE, MessageStatus.STOPPED) and answer.content:
        anew = Message(
            chat=answer.chat, role=answer.role, reply_to=answer.reply_to, mode=answer.mode, created_at=now
        )
    else:
        anew = answer
        anew.attempt += 1
        anew.imported_by = anew.imported_at = None
    anew.content, anew.has_thoughts = "", False
    _set_streaming(anew, now=now)
    return anew


def _set_streaming(answer: Message, *, now: datetime) -> None:
    answer.status, answer.error, answer.error_code = MessageStatus.STREAMING, "", ""
    answer.html, answer.html_of = "", ""
    answer.stop_requested, answer.beat_at, answer.finished_at = False, now, None


def go_on_with(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """Resume a run. If the run waited with its plan for review in a chat's last answer, that answer streams the report.
    For any other answer the report is stored with the run only. Raises what ``resume_run`` raises.
    """
    answer = run.answer
    if answer is None or run.status != RunStatus.WAITING or answer.chat.deleted_at is not None:
        return resume_run(run, by=by, now=now, plan=plan, budget=budget)
    with transaction.atomic():
        versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update(of=("self",)).select_related("chat").get(pk=answer.pk)
        resumed = resume_run(run, by=by, now=now, plan=plan, budget=budget)
        if locked.status != MessageStatus.STREAMING and is_last(locked):
            stream_again(locked, by=run.user_id, now=now)
    return resumed
