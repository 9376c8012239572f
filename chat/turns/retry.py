"""An edited question, or another answer to the same one. What it takes the place of: ``turns.earlier_versions``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from chat.answers.answer_state import reap_abandoned
from chat.answers.problems import CUT
from chat.chats.actions import announce
from chat.models import Message, MessageRole, MessageStatus
from chat.models.steps import Mode
from chat.modes.registry import or_plain
from chat.prompting.short_term import retell
from chat.turns import earlier_versions, runner
from chat.turns.answer_sources import still_there
from chat.turns.begin import Turn, begin_turn
from chat.turns.chosen_model import chosen_for_chat, require_paid
from memories.consent import memory_on
from memoryhub.errors import Conflict
from workspaces.models import User
from workspaces.quotas import spend


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
    """Ask something else in the place of an earlier question of one's own: a turn like any other, in the same mode
    and from the same documents unless others are given.

    The question as it was, and all that followed it, becomes an earlier version; memories that came of it stay.
    """
    earlier_versions.require_editable(message, by)
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
    """That of the answer so far, if the model that is chosen by now can do it."""
    if answered is None:
        return Mode.CHAT
    return or_plain(answered.mode, lambda: chosen_for_chat(answered.chat, by).model.capabilities)


def retry_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Have the last answer of a chat written again. One that was whole, or stopped, is kept as an earlier version;
    one that failed is written anew in its own place.
    """
    reap_abandoned(answer.chat, now=now)
    if answer.role != MessageRole.ASSISTANT or answer.reply_to_id is None:
        raise Conflict(_("Only an answer can be regenerated."))
    _require_last(answer)
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = memory_on(by, answer.chat.memory_enabled) and not answer.chat.is_temporary
    with transaction.atomic():
        earlier_versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        _require_last(locked)
        anew = _blank_anew(locked, now=now)
        anew.memory_enabled = enabled
        anew.save()
        if anew.pk != locked.pk:
            whole = Message.objects.filter(pk=locked.pk)
            earlier_versions.set_aside(whole, first=locked, by=anew, now=now)
            retell(answer.chat, now=now)
        announce(answer.chat)
        transaction.on_commit(lambda: runner.start(anew.pk, anew.attempt, by.pk))
    anew.chat = answer.chat
    return anew


def continue_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Have the last answer of a chat, which its model cut at its limit, go on in its own place."""
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = memory_on(by, answer.chat.memory_enabled) and not answer.chat.is_temporary
    with transaction.atomic():
        earlier_versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        if locked.status != MessageStatus.DONE or locked.error_code != CUT:
            raise Conflict(_("Only an answer that reached its length limit can be continued."))
        _require_last(locked)
        locked.chat, locked.memory_enabled = answer.chat, enabled
        stream_again(locked, by=by.pk, now=now)
    return locked


def stream_again(answer: Message, *, by: int, now: datetime) -> None:
    """Written on in its own place, for the person of this key. It is locked, and the last of its chat."""
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
    """Not stored yet: the answer's own row, emptied, or a new one where there is something to keep of the old."""
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
