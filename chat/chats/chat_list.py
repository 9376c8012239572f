"""The list of chats in the sidebar: a page at a time, latest activity first, under the days people remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.chats.chat_search import Match, matches_in, matching
from chat.chats.marking import marked, with_marks
from chat.chats.tagging import tagged, tags_in
from chat.models import Chat, ChatMark, ChatQuerySet
from memoryhub.database.replicas import read
from workspaces.models import User, Workspace

PAGE_SIZE = 40


@dataclass
class Day:
    slug: str
    label: str
    chats: list[Chat] = field(default_factory=list)


@dataclass(frozen=True)
class ChatListPage:
    """``next``: the chat after which more follow, empty at the end. ``suffix`` keeps ids of later pages apart.
    ``matches``: of a search, where it was said, by the chat's key. ``tag``: the one that is asked for,
    of the reader's ``tags``.
    """

    days: list[Day]
    next: str = ""
    suffix: str = ""
    matches: dict[int, Match] = field(default_factory=dict)
    archived: bool = False
    tag: str = ""
    tags: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(day.chats) for day in self.days)


def chat_list_page(
    workspace: Workspace,
    user: User,
    *,
    q: str = "",
    before: str = "",
    archived: bool = False,
    tag: str = "",
    now: datetime,
) -> ChatListPage:
    """Chats after the chat ``before``, of a search for ``q`` or a ``tag`` those found, archived or not; else the one or
    the other.

    Pinned ones stand first. Seven queries at most.
    """
    which: dict[str, Any] = {"q": q.strip(), "before": before, "archived": archived, "tag": tag.strip()}
    return read(user.pk, lambda: _page(workspace, user, **which, now=now))


def has_chats(workspace: Workspace, user: User) -> bool:
    """Whether the list has any, archived ones too. One query."""
    return Chat.objects.visible_to(user).live().listed().filter(workspace=workspace).exists()


def _page(
    workspace: Workspace, user: User, *, q: str, before: str, archived: bool, tag: str, now: datetime
) -> ChatListPage:
    chats = with_marks(Chat.objects.visible_to(user).live().listed().filter(workspace=workspace), user)
    if tag:
        chats = tagged(chats, tag, by=user)
    pinned = [] if q or tag or before or archived else list(marked(chats, ChatMark.Kind.PINNED, by=user))
    if not (q or tag):
        chats = marked(chats, ChatMark.Kind.ARCHIVED if archived else "", by=user)
    found = list(_narrowed(chats, workspace, user, q, before)[: PAGE_SIZE + 1])
    matches = matches_in(found[:PAGE_SIZE], q, reader=user) if q else {}
    more = found[PAGE_SIZE - 1].public_id if len(found) > PAGE_SIZE else ""
    days = _by_day(found[:PAGE_SIZE], timezone.localdate(now))
    if pinned:
        days.insert(0, Day("pinned", _("Pinned"), pinned))
    return ChatListPage(
        days, more, f"-{before}" if before else "", matches, archived, tag, tags_in(workspace, user)
    )


def _narrowed(chats: ChatQuerySet, workspace: Workspace, user: User, q: str, before: str) -> ChatQuerySet:
    if q:
        chats = matching(chats, q, reader=user, within=[workspace.pk])
    if not before:
        return chats
    last = (
        Chat.objects.visible_to(user)
        .filter(public_id=before, workspace=workspace)
        .values_list("active_at", "pk")
        .first()
    )
    if last is None:
        return chats.none()
    return chats.filter(Q(active_at__lt=last[0]) | Q(active_at=last[0], pk__lt=last[1]))


def _by_day(chats: list[Chat], today: date) -> list[Day]:
    days: list[Day] = []
    for chat in chats:
        slug, label = _name_of_day(timezone.localdate(chat.active_at), today)
        if not days or days[-1].slug != slug:
            days.append(Day(slug, label))
        days[-1].chats.append(chat)
    return days


def _name_of_day(day: date, today: date) -> tuple[str, str]:
    if day >= today:
        return "today", _("Today")
    if day == today - timedelta(days=1):
        return "yesterday", _("Yesterday")
    if day > today - timedelta(days=7):
        return "week", _("Last 7 days")
    if day > today - timedelta(days=30):
        return "month", _("Last 30 days")
    return f"{day:%Y-%m}", date_format(day, "F Y")
