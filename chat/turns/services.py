"""Actions on turns: begin, edit, retry, continue, resume after a plan review, read and restore earlier versions."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Q
from django.utils.translation import gettext as _

from chat.chats.services import publish_chat_list, title_from
from chat.live_answers import CUT, reap_abandoned
from chat.models import MESSAGE_LENGTH, Chat, Message, MessageQuerySet, MessageRole, MessageStatus
from chat.models.answer_steps import Mode
from chat.models.runs import Run, RunStatus
from chat.modes.registry import chosen_for_chat, mode_or_chat, require_mode, require_paid
from chat.prompting.short_term_memory import forget_replaced
from chat.runs.services import resume_run
from chat.turns import turn
from chat.turns.sources import publish_drafts, require_documents, still_there
from memories.access import memory_on
from memories.recalling.recall import prefetch_query_vector
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.localization import grouped
from workspaces.models import User
from workspaces.quotas import spend


@dataclass(frozen=True)
class Version:
    """An earlier version of a message: an answer alone, or a question with all messages after it."""

    messages: Sequence[Message]
    superseded_at: datetime

    @property
    def first(self) -> Message:
        return self.messages[0]


def supersede(messages: MessageQuerySet, *, first: Message, by: Message, now: datetime) -> None:
    """Mark messages as replaced by the message ``by``, which also takes over earlier versions of the ``first``."""
    wanted = list(messages.current().exclude(pk=by.pk).values_list("pk", flat=True))
    first.supersedes.update(superseded_by=by)
    Message.objects.filter(pk__in=wanted).update(superseded_by=by, superseded_at=now)


def require_editable(message: Message, by: User) -> None:
    if message.role != MessageRole.USER or message.author_id != by.pk:
        raise Forbidden(_("You can only edit your own messages."))
    if message.superseded_by_id is not None:
        raise Conflict(_("This message belongs to an earlier version. Restore that version first."))


def replace_from(question: Message, message: Message, *, by: User, now: datetime) -> None:
    """Replace this question and all after it by ``message``. Raises Forbidden for another person's, or Conflict."""
    lock_conversation(question.chat)
    question.refresh_from_db(fields=["superseded_by"])
    require_editable(question, by)
    rest = question.chat.messages.filter(pk__gte=question.pk)
    supersede(rest, first=question, by=message, now=now)
    _update_title(question.chat, question, message)
    forget_replaced(question.chat, now=now)


def versions_of(message: Message, reader: User) -> list[Version]:
    """Return the message's earlier versions that ``reader`` may read, oldest first, without failed ones. One query."""
    rows = message.supersedes.readable_by(reader).select_related("author", "imported_by", "reply_to")
    rows = rows.order_by("superseded_at", "pk")
    versions = [Version(list(group), at) for at, group in groupby(rows, key=_when)]
    whole = [each for each in versions if each.first.role == MessageRole.USER or each.first.content]
    return sorted(whole, key=lambda each: each.first.pk)


def count_versions(messages: Iterable[Message]) -> dict[int, tuple[int, int]]:
    """Return (number of other versions, number of older ones) of each message that has any, by key. One query."""
    rows = Message.objects.filter(superseded_by__in=[message.pk for message in messages]).order_by()
    older = Count("superseded_at", distinct=True, filter=Q(pk__lt=F("superseded_by")))
    counted = rows.exclude(content="").values("superseded_by")
    counts = counted.annotate(number=Count("superseded_at", distinct=True), older=older)
    positions = counts.values_list("superseded_by", "number", "older")
    return {by: (number, older) for by, number, older in positions if by is not None}


def adjacent_version(message: Message, *, back: bool, by: User) -> Message:
    """Return the first message of the next version or (``back``) the previous one. Raises Conflict if there is none."""
    firsts = [version.first for version in versions_of(message, by)]
    on_that_side = [first for first in firsts if (first.pk < message.pk) == back]
    if not on_that_side:
        raise Conflict(_("There are no further versions on this side."))
    return on_that_side[-1] if back else on_that_side[0]


def current_version_of(message: Message) -> Message:
    """Return the message of the current conversation that replaced this one, or the message itself if none did."""
    seen: set[int] = set()
    while message.superseded_by is not None and message.pk not in seen:
        seen.add(message.pk)
        message = message.superseded_by
    return message


def restore_version(message: Message, *, by: User, now: datetime) -> Message:
    """Make the earlier version that contains ``message`` the current one, and return its first message.

    Raises Conflict if it is current already, inside another version, or if the conversation continued after it.
    """
    chat = message.chat  # the caller's object, whose title is updated
    with transaction.atomic():
        lock_conversation(chat)
        message.refresh_from_db()
        current = message.superseded_by
        if current is None:
            raise Conflict(_("This version is already in use."))
        if current.superseded_by_id is not None:
            raise Conflict(_("This belongs to an earlier version. Restore that version first."))
        version = chat.messages.filter(superseded_by=current, superseded_at=message.superseded_at)
        keys = list(version.order_by("pk").values_list("pk", flat=True))
        first = Message.objects.get(pk=keys[0])
        following = chat.messages.current().filter(pk__gte=current.pk)
        if first.role == MessageRole.ASSISTANT and len(following.values_list("pk")[:2]) > 1:
            raise Conflict(_("The conversation continued from the other answer. Edit the question instead."))
        supersede(following, first=current, by=first, now=now)
        _update_title(chat, current, first)
        Message.objects.filter(pk__in=keys).update(superseded_by=None, superseded_at=None)
        forget_replaced(chat, now=now)
    first.refresh_from_db()
    first.chat = chat
    return first


def lock_conversation(chat: Chat) -> None:
    """Lock the conversation. Raises Conflict if an answer is being written, and NotFound if the chat is gone."""
    if Chat.objects.select_for_update(of=("self",)).filter(pk=chat.pk).first() is None:
        raise NotFound(_("This chat has since been deleted."))
    if chat.messages.filter(status=MessageStatus.STREAMING).exists():
        raise _busy()


def _update_title(chat: Chat, before: Message, now: Message) -> None:
    """Replace the chat's title if it was derived from its first message and that was replaced."""
    if chat.messages.current().filter(pk__lt=before.pk).exists():
        return
    title = title_from(now.content)
    if Chat.objects.filter(pk=chat.pk, title=title_from(before.content)).update(title=title):
        chat.title = title


def _when(message: Message) -> datetime:
    assert message.superseded_at is not None, "set aside together with superseded_by"
    return message.superseded_at


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

    ``memory_enabled`` overrides the chat's setting. ``in_place_of`` is a question to be replaced, with all messages
    after it. ``documents`` are the ids of documents that the answer may use; None means all that the person may read
    here. Raises Invalid for a blank or too long message, an unsupported mode or an unknown document; TooManyRequests;
    BudgetReached; and Conflict while another answer is being written.
    """
    content = _clean_message(content)
    require_documents(documents, chat, by)
    require_mode(mode, lambda: chosen_for_chat(chat, by).model.capabilities)
    require_paid(chat, by, now=now)
    spend("turns", by, now=now)
    reap_abandoned(chat, now=now)
    enabled = _uses_memory(chat, by, memory_enabled)
    if enabled:
        prefetch_query_vector(content, now=now)
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
                replace_from(in_place_of, message, by=by, now=now)
            answer = Message.objects.create(
                chat=chat,
                role=MessageRole.ASSISTANT,
                status=MessageStatus.STREAMING,
                reply_to=message,
                memory_enabled=enabled,
                mode=mode,
                created_at=now,
                beat_at=now,
            )
            _say_active(chat, content, now)
            transaction.on_commit(lambda: turn.start(answer, by.pk))
    except IntegrityError:
        raise _busy() from None
    return Turn(message, answer)


def _say_active(chat: Chat, content: str, now: datetime) -> None:
    """Move the chat to the top of the lists, and name it if it has no title. Raises NotFound if it is deleted."""
    if not chat.title:
        chat.title = title_from(content)
        # Unless a concurrent request has named it.
        Chat.objects.filter(pk=chat.pk, title="").update(title=chat.title)
    chat.active_at = now
    if not Chat.objects.filter(pk=chat.pk).update(active_at=now):
        raise NotFound(_("This chat has since been deleted."))
    publish_chat_list(chat)


def require_idle(chat: Chat, *, now: datetime) -> None:
    """Raise Conflict while an answer is being written in the chat."""
    reap_abandoned(chat, now=now)
    if chat.messages.filter(status=MessageStatus.STREAMING).exists():
        raise _busy()


def _busy() -> Conflict:
    return Conflict(_("An answer is still being written in this chat. Stop it or wait."), code="busy")


def _uses_memory(chat: Chat, by: User, choice: bool | None = None) -> bool:
    """Return whether a turn uses memory, by the person's choice or else the chat's. Temporary chats never do."""
    return not chat.is_temporary and memory_on(by, chat.memory_enabled if choice is None else choice)


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
    """Replace a question by ``content``, and answer it. The mode and documents stay the same unless given.

    Memories extracted from the old messages remain. Raises Forbidden for another person's message, and what
    ``begin_turn`` raises.
    """
    require_editable(message, by)
    answered = message.answers.order_by("pk").last()
    if not mode and answered is not None:
        # The mode is the chat's if the current model does not support the answer's.
        mode = mode_or_chat(answered.mode, lambda: chosen_for_chat(message.chat, by).model.capabilities)
    return begin_turn(
        message.chat,
        content=content,
        by=by,
        now=now,
        memory_enabled=memory_enabled,
        mode=mode or Mode.CHAT,
        in_place_of=message,
        documents=still_there(message, by) if documents == "as before" else documents,
    )


def retry_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Write the last answer again. A complete or stopped one stays as a version. Raises Conflict for others."""
    reap_abandoned(answer.chat, now=now)
    if answer.role != MessageRole.ASSISTANT or answer.reply_to_id is None:
        raise Conflict(_("Only an answer can be regenerated."))
    _require_last(answer)
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = _uses_memory(answer.chat, by)
    with transaction.atomic():
        lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        _require_last(locked)
        anew = _empty_again(locked, now=now)
        anew.memory_enabled = enabled
        anew.save()
        if anew.pk != locked.pk:
            whole = Message.objects.filter(pk=locked.pk)
            supersede(whole, first=locked, by=anew, now=now)
            forget_replaced(answer.chat, now=now)
        publish_chat_list(answer.chat)
        transaction.on_commit(lambda: turn.start(anew, by.pk))
    anew.chat = answer.chat
    return anew


def continue_answer(answer: Message, *, by: User, now: datetime) -> Message:
    """Continue the last answer, which was cut off at its length limit, in its message. Raises Conflict for others."""
    require_paid(answer.chat, by, now=now)
    spend("turns", by, now=now)
    enabled = _uses_memory(answer.chat, by)
    with transaction.atomic():
        lock_conversation(answer.chat)
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        if locked.status != MessageStatus.DONE or locked.error_code != CUT:
            raise Conflict(_("Only an answer that reached its length limit can be continued."))
        _require_last(locked)
        locked.chat, locked.memory_enabled = answer.chat, enabled
        stream_again(locked, by=by.pk, now=now)
    return locked


def stream_again(answer: Message, *, by: int, now: datetime) -> None:
    """Start a new attempt that continues the answer's text, as the user with the key ``by``.

    The caller has locked the answer and checked that it is the last of its chat.
    """
    answer.attempt += 1
    _set_streaming(answer, now=now)
    answer.save()
    publish_chat_list(answer.chat)
    transaction.on_commit(lambda: turn.start(answer, by))


def is_last(answer: Message) -> bool:
    last: int | None = answer.chat.messages.current().aggregate(last=Max("pk"))["last"]
    return last == answer.pk


def _require_last(answer: Message) -> None:
    if not is_last(answer):
        raise Conflict(_("Only the last answer in a chat can be regenerated."))


def _empty_again(answer: Message, *, now: datetime) -> Message:
    """Return an unsaved empty answer: a new row if the old text is kept as an earlier version, else the same row."""
    if answer.status in (MessageStatus.DONE, MessageStatus.STOPPED) and answer.content:
        anew = Message(chat=answer.chat, role=answer.role, reply_to=answer.reply_to, created_at=now)
        anew.mode = answer.mode
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


def resume_from_chat(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """Resume a run. If its plan waited in the last answer of a chat, that answer then streams the report."""
    answer = run.answer
    if answer is None or run.status != RunStatus.WAITING or answer.chat.deleted_at is not None:
        return resume_run(run, by=by, now=now, plan=plan, budget=budget)
    with transaction.atomic():
        lock_conversation(answer.chat)
        locked = Message.objects.select_for_update(of=("self",)).select_related("chat").get(pk=answer.pk)
        resumed = resume_run(run, by=by, now=now, plan=plan, budget=budget)
        if locked.status != MessageStatus.STREAMING and is_last(locked):
            stream_again(locked, by=run.user_id, now=now)
    return resumed
