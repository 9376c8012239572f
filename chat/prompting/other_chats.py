"""Which other chats a turn is told of, and what of that is personal where it is told."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db.models import BooleanField, ExpressionWrapper, Q

from chat.chats.personal_memories import personal_in
from chat.models import Chat, ShortTermMemory, was_reader
from workspaces.models import User
from workspaces.policy import Reach


def live_memory(chat: Chat, reader: User, *, now: datetime) -> ShortTermMemory | None:
    """The chat's own, unless it tells of a personal answer that this reader came too late for."""
    rows = ShortTermMemory.objects.filter(chat=chat, expires_at__gte=now)
    return rows.filter(Q(personal_at=None) | was_reader(reader, at="personal_at")).first()


def recent(
    chat: Chat, user: User, *, reach: Reach, now: datetime
) -> tuple[ShortTermMemory | None, list[ShortTermMemory]]:
    """This chat's own, and those of up to three other chats that this person may see, the one touched last first.

    Those of the same workspace, and of all their workspaces if they chose so. Private chats only where their
    workspace allows it, and then to their own person alone. Chats of a workspace whose memories never leave this
    machine, and what rests on such text, only in such a workspace, whichever model answers. Where others read along,
    only what they may all read: chats of this workspace that are not private, without what is personal in them. One
    query, and two more for a chat whose own summary is personal.
    """
    seen = Chat.objects.visible_to(user).live().filter(is_temporary=False)
    seen = seen.filter(Q(is_private=False) | Q(workspace__private_short_term=True))
    told = Q(personal_at=None) | was_reader(user, at="personal_at")
    if not chat.workspace.local_only:
        seen = seen.filter(workspace__local_only=False)
        told &= Q(stays_here=False)
    if not reach.personal:
        seen = seen.filter(is_private=False)
        told &= Q(personal_at=None)
    if not (reach.personal and user.short_term_everywhere):
        seen = seen.filter(workspace_id=chat.workspace_id)
    is_own = ExpressionWrapper(Q(chat_id=chat.pk), BooleanField())
    something = ~Q(summary="") | ~Q(last_said=[])
    fields = ("summary", "last_said", "touched_at", "personal_at", "stays_here")
    others = Q(chat__in=seen) & told
    rows = list(
        ShortTermMemory.objects.filter(Q(chat_id=chat.pk) | others, something, expires_at__gte=now)
        .select_related("chat__workspace")
        .only(*fields, "chat__title", "chat__is_private", "chat__workspace__local_only")
        .order_by(is_own.desc(), "-touched_at", "-id")[: settings.SHORT_TERM_OTHER_CHATS + 1]
    )
    own = rows.pop(0) if rows and rows[0].chat_id == chat.pk else None
    if own is not None and not _is_shown_in(own, chat, user, reach):
        own = None
    return own, rows[: settings.SHORT_TERM_OTHER_CHATS]


def is_personal(row: ShortTermMemory, told_in: Chat) -> bool:
    """Whether what another chat tells of this one is personal: not all who read that chat may read this one."""
    place = told_in.workspace_id
    return row.chat.is_private or row.chat.workspace_id != place or row.personal_at is not None


def stays_here(row: ShortTermMemory, told_in: Chat) -> bool:
    """Whether it tells of text of another workspace that never leaves this machine."""
    is_elsewhere = row.chat.workspace_id != told_in.workspace_id and row.chat.workspace.local_only
    return row.stays_here or is_elsewhere


def _is_shown_in(own: ShortTermMemory, chat: Chat, user: User, reach: Reach) -> bool:
    """Whether a chat's own summary may be in its prompts: all its readers could read what it was written from."""
    if own.stays_here and reach.leaves:
        return False
    if own.personal_at is None:
        return True
    since = personal_in(chat, user).since
    read_then = ShortTermMemory.objects.filter(was_reader(user, at="personal_at"), pk=own.pk)
    return (since is None or own.personal_at >= since) and read_then.exists()
