"""Share links, by which anyone can read a chat as it was when shared: create, update, close and open them.

A link copies no text. It stores ids of the messages that existed when the chat was shared, and shows those that have
not changed since. Messages that are replaced, deleted or forgotten therefore disappear from the link at once.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from chat.chats.services import audit_workspace
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
    ShareLinkQuerySet,
    Step,
    ToolCall,
)
from memories.forgetting.remaining_copies import Wanted
from memories.models import Memory, ReceiptItem, Review
from memories.models.memory import RevisionAction
from memoryhub.errors import Forbidden, Invalid, NotFound
from memoryhub.localization import grouped
from workspaces.access import role_in
from workspaces.accounts.keys import LENGTH, hashed, new_text
from workspaces.actions.purging import Counts
from workspaces.audit import Verb, record
from workspaces.models import Role, User, Workspace

MOST_MESSAGES = 10_000  # limit for one link
NEVER_SHARED = (MessageStatus.STREAMING, MessageStatus.FAILED)


@dataclass(frozen=True)
class Shareable:
    """The content of a new link. ``personal``: number of answers left out because they used personal data.

    ``later``: answers after the first of those. They may repeat personal data, so the user decides whether to show
    them.
    """

    message_ids: list[int]
    memories_used: dict[str, list[int]]
    personal: int
    later: list[int]


def messages_of(link: ShareLink) -> list[int]:
    """Return the primary keys of the messages that the link currently shows, in order. Three queries."""
    gone = forgotten_since([link])[link.pk]
    rows = current_messages(link.chat, None).filter(pk__in=link.message_ids).exclude(pk__in=gone)
    # Exclude an answer that was continued later.
    rows = rows.filter(Q(finished_at=None) | Q(finished_at__lte=link.shared_at))
    return list(rows.values_list("pk", flat=True))


def shareable(chat: Chat, by: User) -> Shareable:
    """Return the content of a new link: the messages that ``by`` may read, without answers that used personal data.

    Nine queries. Raises Invalid above MOST_MESSAGES.
    """
    messages = current_messages(chat, by).values_list("pk", "public_id", "role", "personal")
    rows = list(messages[: MOST_MESSAGES + 1])
    if len(rows) > MOST_MESSAGES:
        why = _("This chat is too long to be shared: more than %s messages.")
        raise Invalid(why % grouped(MOST_MESSAGES))
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
    # The sources of a private run are not recorded, and may have been personal.
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


def current_messages(chat: Chat, reader: User | None) -> MessageQuerySet:
    """Return the chat's current messages that can be shared, without unfinished, failed and empty ones.

    Messages that ``reader`` may not read are left out; None is for messages that are already in a share link.
    """
    rows = Message.objects.filter(chat=chat).current()
    if reader is not None:
        rows = rows.readable_by(reader)
    return rows.exclude(status__in=NEVER_SHARED).exclude(content="").order_by("pk")


def _used_in(keys: dict[str, int]) -> list[tuple[str, int]]:
    """Return (memory id, message key) for each memory in a message's prompt or tools. ``keys``: keys by public id."""
    items = ReceiptItem.objects.filter(receipt__message_id__in=keys, used=True)
    used = items.values_list("memory__public_id", "receipt__message_id")
    pairs = [(memory, keys[message_id]) for memory, message_id in used]
    for noted in (ToolCall, Step):
        rows = noted.objects.filter(message__in=keys.values()).values_list("message", "memory_ids")
        pairs += [(memory, pk) for pk, memories in rows for memory in memories]
    return pairs


def forgotten_since(links: Sequence[ShareLink]) -> dict[int, set[int]]:
    """Return the primary keys of the messages to hide in each link, by the link's primary key.

    A message is hidden if a user has forgotten a memory that was saved from it or used in it. Two queries.
    """
    # Memories that a user deleted, without those evicted, merged or waiting for review.
    forgotten = Q(deleted_at__isnull=False, review=Review.NONE, revisions__action=RevisionAction.DELETE)
    there = Memory.objects.filter(public_id__in={memory for link in links for memory in link.memories_used})
    merged_away = Memory.objects.filter(revisions__action=RevisionAction.MERGE)
    merged_away = merged_away.exclude(pk__in=Memory.objects.standing().values("pk"))
    remaining = there.exclude(forgotten).exclude(pk__in=merged_away.values("pk"))
    remaining_ids = set(remaining.values_list("public_id", flat=True))
    noticed = Memory.objects.filter(forgotten, source_chat_id__in={link.chat.public_id for link in links})
    messages = Message.objects.filter(
        chat__in={link.chat_id for link in links}, public_id__in=noticed.values("source_message_id")
    )
    of_chat: dict[int, set[int]] = defaultdict(set)
    for chat, pk in messages.values_list("chat", "pk"):
        of_chat[chat].add(pk)
    return {
        link.pk: of_chat[link.chat_id].union(
            *(link.memories_used[each] for each in link.memories_used.keys() - remaining_ids)
        )
        for link in links
    }


def drop(link: ShareLink, gone: set[int]) -> None:
    with transaction.atomic():
        locked = ShareLink.objects.select_for_update(of=("self",)).filter(pk=link.pk).first()
        if locked is not None:
            locked.message_ids = [pk for pk in locked.message_ids if pk not in gone]
            locked.save(update_fields=["message_ids"])


PREFIX = "mhl_"  # differs from the prefix of API keys
DAYS = (7, 30)  # lifetimes of a link; None: until it is closed
MOST_LINKS = 20  # limit per chat
SWEPT = 500  # links loaded at a time


def why_not_shareable(chat: Chat) -> str:
    """Return a sentence that says why this chat cannot be shared, or "" if it can."""
    if chat.is_temporary:
        return _("A temporary chat cannot be shared. It is deleted after a day.")
    return why_sharing_is_off(chat.workspace)


def why_sharing_is_off(workspace: Workspace) -> str:
    """Return a sentence that says why no chat of this workspace can be shared, or "" if chats can be shared."""
    if not settings.SHARE_LINKS:
        return _("Links to chats are switched off on this server.")
    if workspace.local_only:
        return _("Nothing in this workspace leaves this machine, so its chats cannot be shared by a link.")
    if not workspace.share_links:
        return _("An owner of this workspace has switched off links to its chats.")
    return ""


def create_link(
    chat: Chat, *, days: int | None, by: User, now: datetime, with_later: bool = False
) -> tuple[ShareLink, str]:
    """Create a link to the chat as it is now. Return it with its token, which is not stored.

    The caller checks that ``by`` may write in the chat. ``days``: lifetime, one of DAYS, or None for no end.
    ``with_later``: include ``Shareable.later``. Raises Invalid for other ``days``, for a chat that cannot be shared or
    has nothing to share, and beyond MOST_LINKS.
    """
    if days is not None and days not in DAYS:
        why = _("must be one of %s, or null to never expire") % ", ".join(map(str, DAYS))
        raise Invalid(fields={"days": why})
    token = new_text(PREFIX)
    with transaction.atomic():
        chat = _locked(chat, by)
        if chat.share_links.count() >= MOST_LINKS:
            raise Invalid(_("A chat can have at most %s links. Turn one off first.") % MOST_LINKS)
        link = ShareLink(chat=chat, made_by=by, token_hash=hashed(token), created_at=now)
        link.expires_at = now + timedelta(days=days) if days else None
        _take(link, shareable(chat, by), now, with_later=with_later)
        link.save()
        record(Verb.LINK_MADE, by=by, workspace=audit_workspace(chat), target=chat.public_id)
    return link, token


def update_link(link: ShareLink, *, by: User, now: datetime) -> ShareLink:
    """Make the link show the chat as it is now. ``Shareable.later`` stays in or out, as before.

    Raises Forbidden unless ``by`` created the link, because only its creator knows who has it.
    """
    if link.made_by_id != by.pk:
        raise Forbidden(_("Only the person who created a link can update it."))
    with transaction.atomic():
        link.chat = _locked(link.chat, by)
        content = shareable(link.chat, by)
        _take(link, content, now, with_later=not set(content.later).isdisjoint(link.message_ids))
        link.save(update_fields=["message_ids", "memories_used", "shared_at"])
        record(Verb.LINK_CHANGED, by=by, workspace=audit_workspace(link.chat), target=link.chat.public_id)
    return link


def close_link(link: ShareLink, *, by: User) -> None:
    """Delete a link. Idempotent. Raises Forbidden unless ``by`` made the link or the chat, or owns the workspace."""
    is_own = by.pk in (link.made_by_id, link.chat.created_by_id)
    if not is_own and role_in(by, link.chat.workspace) != Role.OWNER:
        why = _("Only the person who created a link, or an owner of the workspace, can turn it off.")
        raise Forbidden(why)
    with transaction.atomic():
        if ShareLink.objects.filter(pk=link.pk).delete()[0]:
            record(Verb.LINK_CLOSED, by=by, workspace=audit_workspace(link.chat), target=link.chat.public_id)


def get_link(chat: Chat, public_id: str) -> ShareLink:
    """Return a link of this chat. The caller checks access to the chat. Raises NotFound if there is no such link."""
    links = chat.share_links.select_related("chat__workspace", "chat__created_by", "made_by")
    link = links.filter(public_id=public_id).first()
    if link is None:
        raise NotFound(_("This link does not exist. It may have been turned off."))
    return link


def open_link(token: str, *, now: datetime) -> ShareLink | None:
    """Return the open link with this token, else None. Hashes are looked up, so the duration reveals no tokens."""
    if len(token) != len(PREFIX) + LENGTH or not token.isascii():
        return None
    links = ShareLink.objects.open(now).select_related("chat__workspace")
    return links.filter(token_hash=hashed(token)).first()


def record_opened(link: ShareLink, *, now: datetime) -> None:
    """Store the minute at which the link was opened. If the database refuses the write, the page is still shown."""
    minute = now.replace(second=0, microsecond=0)
    missed = Q(last_opened_at=None) | Q(last_opened_at__lt=minute)
    try:
        with transaction.atomic():
            ShareLink.objects.filter(missed, pk=link.pk).update(last_opened_at=minute)
    except DatabaseError:
        return  # the database is full or read-only


def forget_in_share_links(wanted: Wanted, by: User) -> Counts:
    """Remove the messages of the forgotten memories ``wanted`` from all share links.

    Return an empty count, because the people who forget see no other rows deleted.
    """
    messages = Message.objects.filter(public_id__in=wanted.messages)
    gone = set(messages.values_list("pk", flat=True))
    for link in ShareLink.objects.filter(message_ids__overlap=list(gone), chat__in=messages.values("chat")):
        drop(link, gone)
    return Counter()


def sweep(*, now: datetime) -> None:
    """Delete links that are expired or no longer allowed, and remove messages of forgotten memories from the others.

    Both are permanent: a link stays deleted if its creator joins again, and a message if its memory is restored. Two
    queries for every ``SWEPT`` links of workspaces with a memory deleted in the last day, and two for each change.
    """
    ShareLink.objects.exclude(pk__in=ShareLink.objects.open(now).values("pk")).delete()
    lately = Memory.objects.filter(deleted_at__gte=now - timedelta(days=1))
    links = ShareLink.objects.filter(chat__workspace__in=lately.values("workspace")).select_related("chat")
    rows = links.iterator(chunk_size=SWEPT)
    while some := list(islice(rows, SWEPT)):
        gone = forgotten_since(some)
        for link in some:
            if gone[link.pk].intersection(link.message_ids):
                drop(link, gone[link.pk])


def close_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Delete the links in a restored backup that were closed after it was made. ``say`` receives a sentence about it.

    ``newer``: connection to the database before the restore. Django's connection is to the restored database.
    """
    left = newer.execute("SELECT token_hash FROM chat_sharelink").fetchall()
    closed, _rows = ShareLink.objects.exclude(token_hash__in=[each for (each,) in left]).delete()
    say(f"{closed} links to chats were closed since")


def links_in(workspace: Workspace, user: User, *, now: datetime) -> ShareLinkQuerySet:
    """Return the open links to chats of a workspace that this user may see, newest first."""
    links = ShareLink.objects.open(now).visible_to(user).filter(chat__workspace=workspace)
    return links.select_related("chat__workspace", "made_by")


def _locked(chat: Chat, by: User) -> Chat:
    """Return the chat, locked. Raises NotFound without access, and Invalid if the chat cannot be shared."""
    rows = Chat.objects.visible_to(by).live().select_related("workspace")
    locked = rows.select_for_update(of=("self",), no_key=True).filter(pk=chat.pk).first()
    if locked is None:
        raise NotFound(_("This chat does not exist, or you do not have access to it."))
    if reason := why_not_shareable(locked):
        raise Invalid(reason, code="not_shareable")
    return locked


def _take(link: ShareLink, content: Shareable, now: datetime, *, with_later: bool) -> None:
    hidden = set() if with_later else set(content.later)
    link.message_ids = [pk for pk in content.message_ids if pk not in hidden]
    link.memories_used, link.shared_at = content.memories_used, now
    if not link.message_ids:
        raise Invalid(_("There is nothing in this chat to share yet."))
