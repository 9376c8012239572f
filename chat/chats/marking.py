"""Pinning and archiving: what each reader of a chat does in their own list."""

from __future__ import annotations

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from chat.models import Chat, ChatMark, ChatQuerySet
from memoryhub.errors import Invalid
from workspaces.access import lock_to_count
from workspaces.models import User

MOST_PINNED = 50


def set_mark(chat: Chat, kind: str, *, by: User) -> None:
    """``kind`` of ChatMark.Kind, or "" for neither. A pinned chat that is archived is pinned no more, and back.

    Raises Invalid for an unknown kind, for a temporary chat, and beyond MOST_PINNED pinned ones in a workspace.
    """
    if kind not in ("", *ChatMark.Kind.values):
        raise Invalid(fields={"mark": _("must be one of %s") % ", ".join(["", *ChatMark.Kind.values])})
    if kind and chat.is_temporary:
        raise Invalid(_("A temporary chat is in no list. It is deleted after a day."))
    with transaction.atomic():
        lock_to_count(by)
        mine = ChatMark.objects.filter(user=by)
        pinned = mine.filter(kind=ChatMark.Kind.PINNED, chat__workspace=chat.workspace).exclude(chat=chat)
        if kind == ChatMark.Kind.PINNED and pinned.count() >= MOST_PINNED:
            raise Invalid(_("You can pin at most %s chats here. Unpin one first.") % MOST_PINNED)
        if kind:
            mine.update_or_create(user=by, chat=chat, defaults={"kind": kind})
        else:
            mine.filter(chat=chat).delete()


def mark_of(chat: Chat, reader: User) -> str:
    return ChatMark.objects.filter(user=reader, chat=chat).values_list("kind", flat=True).first() or ""


def with_marks(chats: ChatQuerySet, reader: User) -> ChatQuerySet:
    """Each with its ``mark`` for this reader; None for neither."""
    marks = ChatMark.objects.filter(user=reader, chat=OuterRef("pk")).values("kind")
    return chats.annotate(**{"mark": Subquery(marks)})


def marked(chats: ChatQuerySet, kind: str, *, by: User) -> ChatQuerySet:
    """Those that this reader has marked so; "": those without any mark of theirs."""
    mine = ChatMark.objects.filter(user=by)
    if kind:
        return chats.filter(pk__in=mine.filter(kind=kind).values("chat"))
    return chats.exclude(pk__in=mine.values("chat"))
