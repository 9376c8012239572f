"""Each user's own tags, pins and archive of chats."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import TextField, Value
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from chat.models import Chat, ChatMark, ChatQuerySet, ChatTag
from chat.models.personal_marks import TAG_LENGTH
from memories.writing.drafts import UNSTORABLE
from memoryhub.database.queries import current_connection
from memoryhub.errors import Invalid
from workspaces.access import lock_to_count
from workspaces.models import User, Workspace

MOST_OF_CHAT = 10  # limit of a user's tags on one chat
MOST_HERE = 100  # limit of a user's different tags in a workspace


def set_tags(chat: Chat, names: Sequence[str], *, by: User) -> list[str]:
    """Replace the user's tags of a chat. Return them without duplicates, spelled as in the user's other chats.

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
        tags = [here.get(key, name) for key, name in wanted.items()]
        ChatTag.objects.bulk_create(ChatTag(user=by, chat=chat, name=name) for name in tags)
    return sorted(tags, key=str.casefold)


def tags_of(chat: Chat, reader: User) -> list[str]:
    return list(ChatTag.objects.filter(user=reader, chat=chat).values_list("name", flat=True))


def tags_in(workspace: Workspace, reader: User) -> list[str]:
    """Return the user's tags of chats in the workspace that are still visible to the user. One query."""
    chats = Chat.objects.visible_to(reader).live().filter(workspace=workspace)
    names = ChatTag.objects.filter(user=reader, chat__in=chats).values_list("name", flat=True)
    return sorted(set(names.order_by()), key=str.casefold)


def tagged(chats: ChatQuerySet, name: str, *, by: User) -> ChatQuerySet:
    """Filter chats to those that the user ``by`` tagged with this name. Case and spaces are ignored."""
    same = Lower(Value(_one_line(name), output_field=TextField()))
    mine = ChatTag.objects.alias(lower=Lower("name")).filter(user=by, lower=same)
    return chats.filter(pk__in=mine.values("chat"))


def _clean(name: str) -> str:
    name = _one_line(name)
    if len(name) > TAG_LENGTH:
        message = _("A tag may have at most %s characters.") % TAG_LENGTH
        raise Invalid(message, fields={"tags": message})
    return name


def _one_line(name: str) -> str:
    return " ".join(UNSTORABLE.sub("", name).split())


def _by_key(names: Iterable[str]) -> dict[str, str]:
    """Return the names keyed by their lower case, as Postgres computes it; Python's differs, for İ. One query."""
    with current_connection().cursor() as cursor:
        cursor.execute("SELECT LOWER(name), name FROM UNNEST(%s::text[]) AS name", [list(names)])
        return dict(cursor.fetchall())


MOST_PINNED = 50


def set_mark(chat: Chat, kind: str, *, by: User) -> None:
    """Pin or archive a chat for the user ``by`` (``kind``), or remove the mark if ``kind`` is "".

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


def marked(chats: ChatQuerySet, kind: str, *, by: User) -> ChatQuerySet:
    """Filter chats to those that the user ``by`` pinned or archived (``kind``), or those without a mark if it is ""."""
    mine = ChatMark.objects.filter(user=by)
    if kind:
        return chats.filter(pk__in=mine.filter(kind=kind).values("chat"))
    return chats.exclude(pk__in=mine.values("chat"))
