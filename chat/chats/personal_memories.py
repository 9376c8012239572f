"""Whether a person's own memories, documents and artifacts may be used in a chat: decided here, asked by every way into
a prompt.

What is personal is not put before the model in a chat that others read, unless its person said so for that chat.
What it says of other chats follows it: without that, a turn hears of those alone that all its readers may open.

An answer that rests on something personal is marked (``Message.personal``). Links leave it out, people who could not
read the chat when it was written never read it, and no later prompt of the chat holds it while such people read along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, Subquery

from chat.models import Chat, ChatQuerySet, Message, MessageQuerySet, MessageRole, PersonalUse
from memories.models import ReceiptItem
from workspaces.access import personal_place
from workspaces.models import Membership, User, Workspace


@dataclass(frozen=True)
class Personal:
    """Rules for one person's own memories in one chat. ``said_so``: they allow them although others read it.
    ``since``: from when on all of today's readers can read it; None if nobody else can.
    """

    read_by_others: bool
    said_so: bool
    since: datetime | None = None

    @property
    def allowed(self) -> bool:
        return self.said_so or not self.read_by_others


def personal_in(chat: Chat, user: User) -> Personal:
    """Return the current rules, even if the chat was loaded before. One query.

    A chat is read by others if any other member of its workspace may open it; of a private chat, all but its creator
    are others. A deleted chat counts as read by others.
    """
    others = Membership.objects.filter(workspace=OuterRef("workspace")).exclude(user=user)
    hidden = Q(is_private=True) | Q(is_temporary=True)
    alone = (hidden & Q(created_by=user)) | (~hidden & ~Exists(others))
    said = Chat.personal_of.through.objects.filter(chat=OuterRef("pk"), user=user)
    joined = Subquery(others.order_by("-created_at").values("created_at")[:1])
    found = Chat.objects.filter(pk=chat.pk).annotate(said=Exists(said), alone=Q(alone), joined=joined)
    row = found.values_list("alone", "said", "joined", "opened_at").first()
    if row is None:
        return Personal(read_by_others=True, said_so=False)
    is_alone, said_so, last_joined, opened_at = row
    moments = [moment for moment in (last_joined, opened_at) if moment is not None and not is_alone]
    return Personal(not is_alone, said_so, since=max(moments, default=None))


def personal_allowed(chat: Chat, user: User) -> bool:
    """Return whether prompts of this person's turn may contain their personal memories. One query."""
    return personal_in(chat, user).allowed


@dataclass(frozen=True)
class PromptPolicy:
    """Filter of messages for a prompt of this person's turn: those that all current readers may read, and that may
    reach the model. ``leaves``: the model is not on this machine.
    """

    user: User
    since: datetime | None
    leaves: bool

    @classmethod
    def in_turn(cls, chat: Chat, user: User, *, leaves: bool) -> PromptPolicy:
        """Return the current policy. One query."""
        return cls(user, personal_in(chat, user).since, leaves)

    def of(self, messages: MessageQuerySet) -> MessageQuerySet:
        found = messages.readable_by(self.user)
        if self.since is not None:
            found = found.filter(Q(personal=PersonalUse.NONE) | Q(created_at__gte=self.since))
        return found.filter(stays_here=False) if self.leaves else found

    def has_all(self, messages: MessageQuerySet) -> bool:
        """Return whether it may hold all of these. Two queries."""
        marked = messages.marked()
        return marked.count() == self.of(marked).count()


def withheld_answers(messages: Sequence[Message], reader: User) -> set[int]:
    """Return the keys of those questions whose answer this person may not read. One query where one is not among
    these.
    """
    answered = {message.reply_to_id for message in messages}
    asked = [
        message.pk
        for message in messages
        if message.role == MessageRole.USER and message.pk not in answered and message.author_id != reader.pk
    ]
    if not asked:
        return set()
    answers = Message.objects.current().filter(reply_to__in=asked)
    readable = answers.readable_by(reader)
    hidden = answers.marked().exclude(pk__in=readable.values("pk"))
    return {pk for pk in hidden.values_list("reply_to", flat=True) if pk is not None}


def home_of(chat: Chat, user: User, *, rests_on: Message | None = None) -> tuple[Workspace, bool]:
    """Return the workspace for what this person saves from a chat, and whether it is for them alone: it is if only
    they see the chat, or if the answer rests on something personal. Raises Conflict as ``personal_place``.
    """
    is_personal = rests_on is not None and rests_on.is_marked
    if chat.is_private or chat.is_temporary or is_personal:
        stays_here = rests_on is not None and rests_on.stays_here
        return personal_place(user, said_in=chat.workspace, stays_here=stays_here), True
    return chat.workspace, False


def with_personal_of(user: User, workspace: Workspace) -> ChatQuerySet:
    """Return the chats of a workspace that all its members may open, in which an answer used what is this person's
    own: while nobody else was a member, or since they said so.
    """
    used = ReceiptItem.objects.filter(used=True, memory__owner=user, receipt__workspace=workspace)
    given = Q(public_id__in=used.values("receipt__message_id")) | Q(sources__document__owner=user)
    turn = Q(personal=PersonalUse.HELD, reply_to__author=user)
    answers = Message.objects.current().filter(given | turn)
    chats = Chat.objects.visible_to(user).live().listed().filter(workspace=workspace, is_private=False)
    return chats.filter(pk__in=answers.values("chat"))


def use_personal(chat: Chat, *, allowed: bool, by: User) -> None:
    """Set whether a person's own memories may be used in this chat although others read it. Applies to them alone.

    Earlier answers stay; from the next turn on the setting applies. Calling it twice changes nothing.
    """
    if allowed:
        chat.personal_of.add(by)
    else:
        chat.personal_of.remove(by)
