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
    """Where one person stands in one chat. ``said_so``: they let their own be used though others read it. ``since``:
    from when on everybody reads it who reads it now; None where nobody else does.
    """

    read_by_others: bool
    said_so: bool
    since: datetime | None = None

    @property
    def allowed(self) -> bool:
        return self.said_so or not self.read_by_others


def personal_in(chat: Chat, user: User) -> Personal:
    """As things stand now, whenever the chat was loaded. One query.

    Read by others is what any other member of its workspace may open; of a private chat, all but its creator are
    others. A chat that is gone is read by others: nothing more is said in it.
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
    """Whether what this person's turn is shown may hold their personal memories. One query."""
    return personal_in(chat, user).allowed


@dataclass(frozen=True)
class PromptPolicy:
    """What of a chat a prompt of this person's turn may hold: what all who read the chat now may read, and what may
    reach the model. ``leaves``: the model is not on this machine.
    """

    user: User
    since: datetime | None
    leaves: bool

    @classmethod
    def in_turn(cls, chat: Chat, user: User, *, leaves: bool) -> PromptPolicy:
        """As things stand now. One query."""
        return cls(user, personal_in(chat, user).since, leaves)

    def of(self, messages: MessageQuerySet) -> MessageQuerySet:
        found = messages.readable_by(self.user)
        if self.since is not None:
            found = found.filter(Q(personal=PersonalUse.NONE) | Q(created_at__gte=self.since))
        return found.filter(stays_here=False) if self.leaves else found

    def has_all(self, messages: MessageQuerySet) -> bool:
        """Whether it may hold all of these. Two queries."""
        marked = messages.marked()
        return marked.count() == self.of(marked).count()


def withheld_answers(messages: Sequence[Message], reader: User) -> set[int]:
    """The keys of those questions whose answer this person may not read. One query where one is not among these."""
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
    """Where it is kept what this person keeps of a chat, and whether for them alone: that is so of what comes of a
    chat that only its creator sees, and of an answer that rests on something personal. Conflict as ``personal_place``.
    """
    is_personal = rests_on is not None and rests_on.is_marked
    if chat.is_private or chat.is_temporary or is_personal:
        stays_here = rests_on is not None and rests_on.stays_here
        return personal_place(user, said_in=chat.workspace, stays_here=stays_here), True
    return chat.workspace, False


def with_personal_of(user: User, workspace: Workspace) -> ChatQuerySet:
    """The chats of a workspace that all its members may open, in which an answer used what is this person's own: while
    nobody else was a member, or since they said so.
    """
    used = ReceiptItem.objects.filter(used=True, memory__owner=user, receipt__workspace=workspace)
    given = Q(public_id__in=used.values("receipt__message_id")) | Q(sources__document__owner=user)
    turn = Q(personal=PersonalUse.HELD, reply_to__author=user)
    answers = Message.objects.current().filter(given | turn)
    chats = Chat.objects.visible_to(user).live().listed().filter(workspace=workspace, is_private=False)
    return chats.filter(pk__in=answers.values("chat"))


def use_personal(chat: Chat, *, allowed: bool, by: User) -> None:
    """A person says for themselves alone, and for this chat, whether their own may be used though others read it.

    What was said with them stays said; from the next turn on they are not used any more. Twice does nothing more.
    """
    if allowed:
        chat.personal_of.add(by)
    else:
        chat.personal_of.remove(by)
