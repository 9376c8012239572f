"""Chat list of the sidebar: paging by day, and each user's own pins, archive and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import OuterRef, Q, Subquery, TextField, Value
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.chats.search import Match, matches_in, matching
from chat.models import Chat, ChatMark, ChatQuerySet, ChatTag
from chat.models.marks import TAG_LENGTH
from memories.writing.drafts import UNSTORABLE
from memoryhub.database.replicas import read
from memoryhub.errors import Invalid
from workspaces.access import lock_to_count
from workspaces.models import User, Workspace

MOST_OF_CHAT = 10  # limit of a user's tags on one chat
MOST_HERE = 100  # limit of a user's different tags in a workspace


def set_tags(chat: Chat, names: Sequence[str], *, by: User) -> list[str]:
    """Replace the user's tags of a chat and return them without duplicates, in the spelling already in use.

    Raises Invalid for a tag that is too long, for too many tags, and for a temporary chat.
    """
    wanted = _by_key(name for name in map(_clean, names) if name)
    if wanted and chat.is_temporary:
        raise Invalid(_("A temporary chat is in no list. It is deleted after a day."))
    if len(wanted) > MOST_OF_CHAT:
        raise Invalid(fields={"tags": _("may be at most %s") % MOST_OF_CHAT})
    with transaction.atomic():
        lock_to_count(by)
        ChatTag.objects.filter(user=by, chat=chat).delete()
        here = _by_key(tags_in(chat.workspace, by))
        if len(here.keys() | wanted.keys()) > MOST_HERE:
            raise Invalid(fields={"tags": _("may be at most %s different ones in a workspace") % MOST_HERE})
        kept = [here.get(key, name) for key, name in wanted.items()]
        ChatTag.objects.bulk_create(ChatTag(user=by, chat=chat, name=name) for name in kept)
    return sorted(kept, key=str.casefold)


def tags_of(chat: Chat, reader: User) -> list[str]:
    return list(ChatTag.objects.filter(user=reader, chat=chat).values_list("name", flat=True))


def tags_in(workspace: Workspace, reader: User) -> list[str]:
    """Return the user's tags of chats in the workspace that the user can still see. One query."""
    chats = Chat.objects.visible_to(reader).live().filter(workspace=workspace)
    names = ChatTag.objects.filter(user=reader, chat__in=chats).values_list("name", flat=True)
    return sorted(set(names.order_by()), key=str.casefold)


def tagged(chats: ChatQuerySet, name: str, *, by: User) -> ChatQuerySet:
    """Return the chats with this tag of the user's, regardless of case and spaces."""
    same = Lower(Value(_one_line(name), output_field=TextField()))
    mine = ChatTag.objects.alias(lower=Lower("name")).filter(user=by, lower=same)
    return chats.filter(pk__in=mine.values("chat"))


def _clean(name: str) -> str:
    name = _one_line(name)
    if len(name) > TAG_LENGTH:
        said = _("A tag may have at most %s characters.") % TAG_LENGTH
        raise Invalid(said, fields={"tags": said})
    return name


def _one_line(name: str) -> str:
    return " ".join(UNSTORABLE.sub("", name).split())


def _by_key(names: Iterable[str]) -> dict[str, str]:
    """Return the names by their lower case in Postgres, which decides which tags are equal. One query.

    Python's lower case differs, for example for İ.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT LOWER(name), name FROM UNNEST(%s::text[]) AS name", [list(names)])
        return dict(cursor.fetchall())


MOST_PINNED = 50


def set_mark(chat: Chat, kind: str, *, by: User) -> None:
    """Set the user's mark of a chat to ``kind`` (pinned or archived), or remove it if ``kind`` is "".

    Raises Invalid for an unknown kind, for a temporary chat, and beyond MOST_PINNED pinned chats in a workspace.
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
    """Annotate each chat with this user's ``mark``, or None."""
    marks = ChatMark.objects.filter(user=reader, chat=OuterRef("pk")).values("kind")
    return chats.annotate(**{"mark": Subquery(marks)})


def marked(chats: ChatQuerySet, kind: str, *, by: User) -> ChatQuerySet:
    """Return the chats with this mark of the user's or, if ``kind`` is "", the chats without a mark."""
    mine = ChatMark.objects.filter(user=by)
    if kind:
        return chats.filter(pk__in=mine.filter(kind=kind).values("chat"))
    return chats.exclude(pk__in=mine.values("chat"))


PAGE_SIZE = 40


@dataclass
class Day:
    slug: str
    label: str
    chats: list[Chat] = field(default_factory=list)


@dataclass(frozen=True)
class ChatListPage:
    """A page of the chat list.

    ``next``: id of the last chat if more follow, else "". ``suffix``: keeps HTML ids of later pages unique.
    ``matches``: by primary key, the text in which a search found the chat. ``tag``: the chosen tag of the user's
    ``tags``.
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
    """Return the chats after the chat ``before``, pinned ones first. At most seven queries.

    A search for ``q`` or a ``tag`` finds archived and other chats; without them, ``archived`` selects which are listed.
    """
    which: dict[str, Any] = {"q": q.strip(), "before": before, "archived": archived, "tag": tag.strip()}
    return read(user.pk, lambda: _page(workspace, user, **which, now=now))


def has_chats(workspace: Workspace, user: User) -> bool:
    """Return whether the user's list has any chats, including archived ones. One query."""
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
