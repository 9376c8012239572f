"""Chat list of the sidebar, paged by day."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.chats.message_search import Match, matches_in, matching
from chat.chats.tags_and_pins import marked, tagged, tags_in
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
    """A page of the chat list.

    ``next``: id of the last chat if more follow, else "". ``suffix``: makes the HTML ids of later pages unique.
    ``matches``: the matching message of each chat by primary key, in a search. ``tags``: all tags of the user. ``tag``:
    the selected one.
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
    """Return a page of chats, pinned ones first. At most seven queries.

    ``before``: id of the last chat of the previous page. A search for ``q`` or a ``tag`` includes archived chats.
    Otherwise ``archived`` selects either the archived chats or the others.
    """
    q, tag = q.strip(), tag.strip()

    def load() -> ChatListPage:
        marks = ChatMark.objects.filter(user=user, chat=OuterRef("pk")).values("kind")
        chats = Chat.objects.visible_to(user).live().listed().filter(workspace=workspace)
        chats = chats.annotate(**{"mark": Subquery(marks)})
        if tag:
            chats = tagged(chats, tag, by=user)
        pinned = [] if q or tag or before or archived else list(marked(chats, ChatMark.Kind.PINNED, by=user))
        if not (q or tag):
            chats = marked(chats, ChatMark.Kind.ARCHIVED if archived else "", by=user)
        rows = list(_narrowed(chats, workspace, user, q, before)[: PAGE_SIZE + 1])
        matches = matches_in(rows[:PAGE_SIZE], q, reader=user) if q else {}
        more = rows[PAGE_SIZE - 1].public_id if len(rows) > PAGE_SIZE else ""
        days = _by_day(rows[:PAGE_SIZE], timezone.localdate(now))
        if pinned:
            days.insert(0, Day("pinned", _("Pinned"), pinned))
        suffix = f"-{before}" if before else ""
        return ChatListPage(days, more, suffix, matches, archived, tag, tags_in(workspace, user))

    return read(user.pk, load)


def has_chats(workspace: Workspace, user: User) -> bool:
    """Return whether the user's list has any chats, including archived ones. One query."""
    return Chat.objects.visible_to(user).live().listed().filter(workspace=workspace).exists()


def _narrowed(chats: ChatQuerySet, workspace: Workspace, user: User, q: str, before: str) -> ChatQuerySet:
    if q:
        chats = matching(chats, q, reader=user, within=[workspace.pk])
    if not before:
        return chats
    last = Chat.objects.visible_to(user).filter(public_id=before, workspace=workspace).first()
    if last is None:
        return chats.none()
    return chats.filter(Q(active_at__lt=last.active_at) | Q(active_at=last.active_at, pk__lt=last.pk))


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
