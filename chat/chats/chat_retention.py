"""Chats as something that is kept for a time only (``workspaces.retention``)."""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, Q

from chat.chats.actions import take_out
from chat.models import Chat, ChatMark, ChatQuerySet
from workspaces.retention import Kept


def _unpinned() -> ChatQuerySet:
    """Whoever has pinned it: what one reader keeps stays for all. Temporary ones go after a day anyway."""
    pins = ChatMark.objects.filter(chat=OuterRef("pk"), kind=ChatMark.Kind.PINNED)
    return Chat.objects.live().filter(~Exists(pins), is_temporary=False).select_related("created_by")


CHATS = Kept(
    name="chats",
    rows=_unpinned,
    since=F("active_at"),
    shared=Q(is_private=False),
    of=lambda user: Q(created_by=user),
    delete=take_out,
)
