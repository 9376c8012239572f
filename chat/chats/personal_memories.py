"""Rules for using a user's personal memories, documents and artifacts in a chat.

If other people can read a chat, its prompts contain no personal data, unless the owner of the data allowed that for the
chat, and only texts of other chats that all readers may open.

An answer that used personal data is marked (``Message.personal``). It is left out of share links. People who could not
read the chat when it was written never see it, and while they can read the chat, later prompts leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, Subquery

from chat.models import Chat, ChatQuerySet, Message, MessageQuerySet, MessageRole, PersonalUse
from chat.models.chats import SHARED
from memories.models import ReceiptItem
from memoryhub.database.queries import PreparedQuery
from workspaces.access import personal_place
from workspaces.models import Membership, User, Workspace


@dataclass(frozen=True)
class Personal:
    """The rules for one user's personal data in one chat.

    ``is_permitted``: the user allowed the use although others can read the chat. ``since``: when the newest of the
    current readers gained access, or None if nobody else can read the chat.
    """

    read_by_others: bool
    is_permitted: bool
    since: datetime | None = None

    @property
    def allowed(self) -> bool:
        return self.is_permitted or not self.read_by_others


def _readers(*, chat: int, user: int) -> ChatQuerySet:
    """Return a queryset of the chat, annotated for this user.

    ``alone``: only the user can read it. ``permitted``: the user has allowed personal data in it. ``joined``: when the
    newest other member joined.
    """
    others = Membership.objects.filter(workspace=OuterRef("workspace")).exclude(user=user)
    alone = (~SHARED & Q(created_by=user)) | (SHARED & ~Exists(others))
    permitted = Chat.personal_of.through.objects.filter(chat=OuterRef("pk"), user=user)
    joined = Subquery(others.order_by("-created_at").values("created_at")[:1])
    chats = Chat.objects.filter(pk=chat).only("opened_at")
    return chats.annotate(alone=Q(alone), permitted=Exists(permitted), joined=joined)


_READERS = PreparedQuery(_readers, chat=int, user=int)


def personal_in(chat: Chat, user: User) -> Personal:
    """Return the current rules for the chat and the user. One query. A deleted chat counts as readable by others."""
    row: Any = _READERS.first(chat=chat.pk, user=user.pk)
    if row is None:
        return Personal(read_by_others=True, is_permitted=False)
    moments = [moment for moment in (row.joined, row.opened_at) if moment is not None and not row.alone]
    return Personal(not row.alone, row.permitted, since=max(moments, default=None))


def personal_allowed(chat: Chat, user: User) -> bool:
    """Return whether prompts for this user in the chat may contain the user's personal data. One query."""
    return personal_in(chat, user).allowed


@dataclass(frozen=True)
class PromptPolicy:
    """A filter for the messages that a prompt may contain: those that the user and all current readers may read.

    If the model is remote, messages with local-only text are excluded.
    """

    user: User
    since: datetime | None
    model_is_remote: bool

    @classmethod
    def in_turn(cls, chat: Chat, user: User, *, model_is_remote: bool) -> PromptPolicy:
        """Return the policy for a turn that starts now. One query."""
        return cls(user, personal_in(chat, user).since, model_is_remote)

    def of(self, messages: MessageQuerySet) -> MessageQuerySet:
        readable = messages.readable_by(self.user)
        if self.since is not None:
            readable = readable.filter(Q(personal=PersonalUse.NONE) | Q(created_at__gte=self.since))
        return readable.filter(stays_here=False) if self.model_is_remote else readable

    def has_all(self, messages: MessageQuerySet) -> bool:
        """Return whether a prompt may contain all of these messages. Two queries."""
        marked = messages.marked()
        return marked.count() == self.of(marked).count()


def withheld_answers(messages: Sequence[Message], reader: User) -> set[int]:
    """Return the primary keys of the questions in ``messages`` whose answer is hidden from the reader.

    Such an answer used personal data and was written before the reader could read the chat. One query, or none if no
    question of another user lacks its answer in ``messages``.
    """
    answered = {message.reply_to_id for message in messages}
    question_pks = [
        message.pk
        for message in messages
        if message.role == MessageRole.USER and message.pk not in answered and message.author_id != reader.pk
    ]
    answers = Message.objects.current().filter(reply_to__in=question_pks)
    readable = answers.readable_by(reader)
    hidden = answers.marked().exclude(pk__in=readable.values("pk"))
    return {pk for pk in hidden.values_list("reply_to", flat=True) if pk is not None}


def workspace_for_saving(chat: Chat, user: User, *, answer: Message | None = None) -> tuple[Workspace, bool]:
    """Return (workspace, is personal): where to store something that the user saves from a chat, and whether only the
    user may see it.

    It is personal if the chat is private or temporary, or if ``answer``, which it was saved from, used personal or
    local-only data. Raises Conflict if it would then move from a local-only workspace to one that is not local-only.
    """
    is_personal = answer is not None and answer.is_marked
    if is_personal or not chat.is_shared:
        stays_here = answer is not None and answer.stays_here
        return personal_place(user, said_in=chat.workspace, stays_here=stays_here), True
    return chat.workspace, False


def chats_with_personal_data_of(user: User, workspace: Workspace) -> ChatQuerySet:
    """Return the workspace's chats that others can read and that have an answer with this user's personal data."""
    used = ReceiptItem.objects.filter(used=True, memory__owner=user, receipt__workspace=workspace)
    by_sources = Q(public_id__in=used.values("receipt__message_id")) | Q(sources__document__owner=user)
    turn = Q(personal=PersonalUse.HELD, reply_to__author=user)
    answers = Message.objects.current().filter(by_sources | turn)
    chats = Chat.objects.visible_to(user).live().listed().filter(workspace=workspace, is_private=False)
    return chats.filter(pk__in=answers.values("chat"))


def use_personal(chat: Chat, *, allowed: bool, by: User) -> None:
    """Set whether later prompts in this chat may use the user's personal data although others can read the chat."""
    if allowed:
        chat.personal_of.add(by)
    else:
        chat.personal_of.remove(by)
