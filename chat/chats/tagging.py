"""Tags: words by which each reader sorts the chats of their own list. Nobody else sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection, transaction
from django.db.models import TextField, Value
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from chat.models import Chat, ChatQuerySet, ChatTag
from chat.models.marks import TAG_LENGTH
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Invalid
from workspaces.access import lock_to_count
from workspaces.models import User, Workspace

MOST_OF_CHAT = 10
MOST_HERE = 100  # different ones of a person in a workspace


def set_tags(chat: Chat, names: Sequence[str], *, by: User) -> list[str]:
    """These and no others, as they are kept: once each, whatever the case, in the words of the one there is.

    Raises Invalid for a tag that is too long, too many, and for a temporary chat.
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
    """Those that this reader has given to chats there that they may still see. One query."""
    chats = Chat.objects.visible_to(reader).live().filter(workspace=workspace)
    names = ChatTag.objects.filter(user=reader, chat__in=chats).values_list("name", flat=True)
    return sorted(set(names.order_by()), key=str.casefold)


def tagged(chats: ChatQuerySet, name: str, *, by: User) -> ChatQuerySet:
    """Those to which this reader has given the tag, whatever its case and blanks."""
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
    """The last of each that are one tag, by what they have in common: what the database holds unique. One query.

    Python's lower case is another: there İ is none of i.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT LOWER(name), name FROM UNNEST(%s::text[]) AS name", [list(names)])
        return dict(cursor.fetchall())
