"""Earlier versions of a conversation, replaced by an edited question or another answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db import transaction
from django.db.models import Count, F, Q
from django.utils.translation import gettext as _

from chat.chats.services import title_from
from chat.models import Chat, Message, MessageQuerySet, MessageRole, MessageStatus
from chat.prompting.short_term import retell
from memoryhub.errors import Conflict, Forbidden, NotFound
from workspaces.models import User


@dataclass(frozen=True)
class Version:
    """An earlier version of a message: an answer alone, or a question with all messages after it."""

    messages: Sequence[Message]
    superseded_at: datetime

    @property
    def first(self) -> Message:
        return self.messages[0]


def set_aside(messages: MessageQuerySet, *, first: Message, by: Message, now: datetime) -> None:
    """Mark these messages, which begin with ``first``, as replaced by ``by``. Earlier versions of ``first`` move to
    ``by``.
    """
    wanted = list(messages.current().exclude(pk=by.pk).values_list("pk", flat=True))
    first.supersedes.update(superseded_by=by)
    Message.objects.filter(pk__in=wanted).update(superseded_by=by, superseded_at=now)


def require_editable(message: Message, by: User) -> None:
    if message.role != MessageRole.USER or message.author_id != by.pk:
        raise Forbidden(_("You can only edit your own messages."))
    if message.superseded_by_id is not None:
        raise Conflict(_("This message belongs to an earlier version. Restore that version first."))


def take_the_place_of(question: Message, message: Message, *, by: User, now: datetime) -> None:
    """Replace this question and all messages after it by ``message``. Raises Forbidden or Conflict if it may not be
    edited.
    """
    lock_conversation(question.chat)
    question.refresh_from_db(fields=["superseded_by"])
    require_editable(question, by)
    rest = question.chat.messages.filter(pk__gte=question.pk)
    set_aside(rest, first=question, by=message, now=now)
    _follow_in_title(question.chat, question, message)
    retell(question.chat, now=now)


def versions_of(message: Message, reader: User) -> list[Version]:
    """Return the earlier versions of this message that ``reader`` may read, oldest first, without failed attempts. One
    query.
    """
    rows = message.supersedes.readable_by(reader).select_related("author", "imported_by", "reply_to")
    rows = rows.order_by("superseded_at", "pk")
    found = [Version(list(group), at) for at, group in groupby(rows, key=_when)]
    return sorted((each for each in found if _is_something(each)), key=lambda each: each.first.pk)


@dataclass(frozen=True)
class Place:
    """The position of a message among its versions: the number of other versions, and how many of them are older."""

    number: int
    older: int


def count_versions(messages: Iterable[Message]) -> dict[int, Place]:
    """Return the number of other versions of each message, by message key. One query."""
    rows = Message.objects.filter(superseded_by__in=[message.pk for message in messages]).order_by()
    older = Count("superseded_at", distinct=True, filter=Q(pk__lt=F("superseded_by")))
    counted = rows.exclude(content="").values("superseded_by")
    found = counted.annotate(number=Count("superseded_at", distinct=True), older=older)
    return {
        by: Place(number, older)
        for by, number, older in found.values_list("superseded_by", "number", "older")
        if by
    }


def step_to(message: Message, *, back: bool, by: User) -> Message:
    """Return the first message of the previous version, or of the next one. Raises Conflict if there is none."""
    firsts = [version.first for version in versions_of(message, by)]
    on_that_side = [first for first in firsts if (first.pk < message.pk) == back]
    if not on_that_side:
        raise Conflict(_("There are no further versions on this side."))
    return on_that_side[-1] if back else on_that_side[0]


def standing_for(message: Message) -> Message:
    """Return the message of the current conversation that replaced this one, or the message itself if none did."""
    seen: set[int] = set()
    while message.superseded_by is not None and message.pk not in seen:
        seen.add(message.pk)
        message = message.superseded_by
    return message


def bring_back(message: Message, *, by: User, now: datetime) -> Message:
    """Restore the earlier version that this message belongs to, and return the version's first message.

    The current version becomes an earlier one. Raises Conflict if the version is in use, belongs to an earlier version,
    or the conversation continued from another answer.
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
        set_aside(following, first=current, by=first, now=now)
        _follow_in_title(chat, current, first)
        Message.objects.filter(pk__in=keys).update(superseded_by=None, superseded_at=None)
        retell(chat, now=now)
    first.refresh_from_db()
    first.chat = chat
    return first


def lock_conversation(chat: Chat) -> None:
    """Lock the conversation until the transaction ends. Raises Conflict if an answer is being written, and NotFound if
    the chat has been deleted.
    """
    if Chat.objects.select_for_update(of=("self",)).filter(pk=chat.pk).first() is None:
        raise NotFound(_("This chat has since been forgotten."))
    if chat.messages.filter(status=MessageStatus.STREAMING).exists():
        raise Conflict(_("An answer is still being written in this chat. Stop it or wait."), code="busy")


def _follow_in_title(chat: Chat, before: Message, now: Message) -> None:
    """Update a title taken from the first message if that message is replaced. A title given by a person is kept."""
    if chat.messages.current().filter(pk__lt=before.pk).exists():
        return
    title = title_from(now.content)
    if Chat.objects.filter(pk=chat.pk, title=title_from(before.content)).update(title=title):
        chat.title = title


def _when(message: Message) -> datetime:
    assert message.superseded_at is not None, "set aside together with superseded_by"
    return message.superseded_at


def _is_something(version: Version) -> bool:
    return version.first.role == MessageRole.USER or bool(version.first.content)
