"""Which messages of a chat a link shows: what may be shared of them now, and what is left of what was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from chat.models import (
    AnswerSource,
    Chat,
    Message,
    MessageQuerySet,
    MessageRole,
    MessageStatus,
    PersonalUse,
    Run,
    ShareLink,
    Step,
    ToolCall,
)
from memories.models import Memory, ReceiptItem, Review
from memories.models.memory import RevisionAction
from memoryhub.errors import Invalid
from memoryhub.languages import grouped
from workspaces.models import User

MOST_MESSAGES = 10_000  # of one link
NEVER_SHARED = (MessageStatus.STREAMING, MessageStatus.FAILED)


@dataclass(frozen=True)
class Shareable:
    """What a link made now would show. ``personal``: how many answers it leaves out since they used something of
    somebody's own. ``later``: the answers after the first of those. Each was written with it in view and may say it
    again in its own words, which nothing can tell: they are shown where who shares says so.
    """

    message_ids: list[int]
    memories_used: dict[str, list[int]]
    personal: int
    later: list[int]

    def shown(self, *, with_later: bool) -> list[int]:
        hidden = set() if with_later else set(self.later)
        return [pk for pk in self.message_ids if pk not in hidden]


def messages_of(link: ShareLink) -> list[int]:
    """The keys of what is left of it to show, in order. Three queries, whatever its length."""
    gone = gone_since([link])[link.pk]
    rows = standing(link.chat, None).filter(pk__in=link.message_ids).exclude(pk__in=gone)
    rows = rows.filter(Q(finished_at=None) | Q(finished_at__lte=link.shared_at))  # else it was written on
    return list(rows.values_list("pk", flat=True))


def shareable(chat: Chat, by: User) -> Shareable:
    """Of what ``by`` may read. Answers for which something of somebody's own was used are left out, whosever it was.
    Nine queries.
    """
    rows = list(standing(chat, by).values_list("pk", "public_id", "role", "personal")[: MOST_MESSAGES + 1])
    if len(rows) > MOST_MESSAGES:
        raise Invalid(
            _("This chat is too long to be shared: more than %s messages.") % grouped(MOST_MESSAGES)
        )
    keys = {public_id: pk for pk, public_id, *_rest in rows}
    memories: dict[str, set[int]] = defaultdict(set)
    for memory, pk in _used_in(keys):
        memories[memory].add(pk)
    owned = Memory.objects.filter(public_id__in=memories).exclude(owner=None)
    personal = {pk for pk, _id, _role, use in rows if use == PersonalUse.HELD}
    personal |= {pk for each in owned.values_list("public_id", flat=True) for pk in memories[each]}
    told = AnswerSource.objects.filter(message__in=keys.values(), document__owner__isnull=False)
    read = ToolCall.objects.filter(message__in=keys.values(), held_personal=True)
    personal |= {*told.values_list("message", flat=True), *read.values_list("message", flat=True)}
    # What a private run was told of is noted nowhere, and may have been its person's own.
    runs = Run.objects.filter(answer__in=keys.values(), is_private=True)
    personal |= {pk for pk in runs.values_list("answer", flat=True) if pk is not None}
    said_in = Memory.objects.filter(source_message_id__in=keys)
    for memory, message in said_in.values_list("public_id", "source_message_id"):
        memories[memory].add(keys[message])
    known = Memory.objects.filter(public_id__in=memories, deleted_at=None).values_list("public_id", flat=True)
    memories_used = {each: sorted(memories[each]) for each in known}
    later = [
        pk
        for pk, _id, role, use in rows
        if role == MessageRole.ASSISTANT and pk not in personal
        if use == PersonalUse.SEEN or (personal and pk > min(personal))
    ]
    return Shareable([pk for pk in keys.values() if pk not in personal], memories_used, len(personal), later)


def standing(chat: Chat, reader: User | None) -> MessageQuerySet:
    """What this person reads: the conversation as it goes now, without what is being written, failed or is empty.
    None reads what somebody shared with them.
    """
    rows = Message.objects.filter(chat=chat).current()
    if reader is not None:
        rows = rows.readable_by(reader)
    return rows.exclude(status__in=NEVER_SHARED).exclude(content="").order_by("pk")


def _used_in(keys: dict[str, int]) -> list[tuple[str, int]]:
    """Ids of memories that were used for these messages, found by their tools or held against them."""
    items = ReceiptItem.objects.filter(receipt__message_id__in=keys, used=True)
    found = [
        (memory, keys[said]) for memory, said in items.values_list("memory__public_id", "receipt__message_id")
    ]
    for noted in (ToolCall, Step):
        rows = noted.objects.filter(message__in=keys.values()).values_list("message", "memory_ids")
        found += [(memory, pk) for pk, memories in rows for memory in memories]
    return found


def gone_since(links: Sequence[ShareLink]) -> dict[int, set[int]]:
    """By link: messages that were said of a memory, or with it, that somebody has forgotten since. Two queries."""
    there = Memory.objects.filter(public_id__in={memory for link in links for memory in link.memories_used})
    kept = set(there.exclude(_forgotten()).values_list("public_id", flat=True))
    noticed = Memory.objects.filter(_forgotten(), source_chat_id__in={link.chat.public_id for link in links})
    said = Message.objects.filter(
        chat__in={link.chat_id for link in links}, public_id__in=noticed.values("source_message_id")
    )
    of_chat: dict[int, set[int]] = defaultdict(set)
    for chat, pk in said.values_list("chat", "pk"):
        of_chat[chat].add(pk)
    return {
        link.pk: of_chat[link.chat_id].union(
            *(link.memories_used[each] for each in link.memories_used.keys() - kept)
        )
        for link in links
    }


def _forgotten() -> Q:
    """By a person: what made room, was merged or waits for review is not."""
    return Q(deleted_at__isnull=False, review=Review.NONE, revisions__action=RevisionAction.DELETE)


def drop(link: ShareLink, gone: set[int]) -> None:
    with transaction.atomic():
        locked = ShareLink.objects.select_for_update(of=("self",)).filter(pk=link.pk).first()
        if locked is not None:
            locked.message_ids = [pk for pk in locked.message_ids if pk not in gone]
            locked.save(update_fields=["message_ids"])
