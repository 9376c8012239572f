"""Labels that attribute texts in prompts, excerpts and pages. Typed text can neither close nor imitate a label."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Protocol

from django.utils.translation import gettext as _

from chat.models import Message, MessageQuerySet, MessageRole, PersonalUse
from chat.prompting.text import escape
from memories.models import Memory
from memories.models.memory import CATEGORIES
from memories.writing.drafts import cut_at_word
from memoryhub.languages import isolated
from workspaces.models import User

SIGNS_OF_NAMES = ".@+_'\u2019-"
_NAME = ("username", "first_name", "last_name")


class Attributed(Protocol):
    """A message, a memory or a search result."""

    @property
    def is_imported(self) -> bool: ...
    @property
    def imported_by(self) -> User | None: ...
    @property
    def written_by(self) -> User | None: ...


def imported_label(row: Attributed) -> str:
    """Return who imported a row and under whose name; empty where its words are of the person it names."""
    if not row.is_imported:
        return ""
    label = f"imported by {named(row.imported_by)}"
    return f"{label}, said to be from {named(row.written_by)}" if row.written_by else label


def writer_label(row: Attributed, *, is_edited: bool) -> str:
    """Return whose words a memory or message is; of an imported one who answers for it."""
    return imported_label(row) or f"{'edited by' if is_edited else 'from'} {named(row.written_by)}"


def text_of(row: Message | Memory, *, names_people: bool = False) -> str:
    """Return a text for a prompt; one that was imported under somebody's name says so first.

    ``names_people``: several people wrote, and each text says whose it is.
    """
    label = writer_label(row, is_edited=False) if names_people else imported_label(row)
    return f"[{label}]\n{row.content}" if label else row.content


def said_by_several(messages: Iterable[Message]) -> bool:
    """Return whether more than one person wrote these."""
    return len({each.author_id for each in messages if each.role == MessageRole.USER}) > 1


def with_labels(messages: MessageQuerySet, *more: str) -> MessageQuerySet:
    """Load what ``text_of`` reads of messages, the fields ``more``, and nothing else."""
    names = (f"{person}__{name}" for person in ("author", "imported_by") for name in _NAME)
    return messages.select_related("author", "imported_by").only(
        "role", "content", "imported_at", *names, *more
    )


def named(user: User | None) -> str:
    """Return a person's shown name, with the user name where that is another: two people may share a shown name."""
    if user is None:
        return name_of(None)
    username = quoted(user.get_username())
    return username if user.shown_name == user.get_username() else f"{quoted(user.shown_name)} {username}"


def quoted(text: str) -> str:
    """Return a person's text for a label: in quotes, without the signs that could end a quote, a field or a label."""
    signs = (" " if unicodedata.category(s)[0] in "PS" and s not in SIGNS_OF_NAMES else s for s in text)
    return f'"{escape("".join(signs))}"'


def category_label(memory: Memory) -> str:
    """Return the category for a label: a usual one as it is, one that a person made up in quotes."""
    category = memory.category or ""
    return category if category in ("", *CATEGORIES) else f"category {quoted(category)}"


def held_label(memory: Memory) -> str:
    """Return from when and until when a memory holds; empty where nobody said."""
    bounds = [("from", memory.valid_from), ("until", memory.valid_to)]
    return " ".join(f"{word} {moment:%Y-%m-%d}" for word, moment in bounds if moment is not None)


def name_of(user: User | None) -> str:
    return user.shown_name if user else "somebody who left"


def imported(row: Attributed) -> str:
    """Return who imported a message, a memory or a search result and under whose name, in the reader's language."""
    importer, author = row.imported_by, row.written_by
    names = {
        "importer": isolated(importer.attributed_name) if importer else "",
        "author": isolated(author.attributed_name) if author else "",
    }
    if author is None:
        return _("Imported by %(importer)s") % names if importer else _("Imported by someone who left")
    if importer is None:
        return _("Imported by someone who left, said to be from %(author)s") % names
    return _("Imported by %(importer)s, said to be from %(author)s") % names


def withheld(question: Message) -> str:
    """Return why a reader finds no answer to this question, in their language."""
    if question.author is None:
        return _(
            "The answer draws on something personal, such as a private chat or a personal memory. "
            "Only people who could read this chat when it was written can see it."
        )
    return _(
        "The answer draws on something of %(name)s alone, such as a private chat or a personal memory. "
        "Only people who could read this chat when it was written can see it."
    ) % {"name": isolated(question.author.shown_name)}


BEFORE, AFTER = 2, 1
PART_LENGTH = 1000


def excerpt_around(message: Message) -> str:
    """Return two messages before, the message, and one after, a line each with its speaker. The gate removes secrets.

    Empty for private and temporary chats and for personal answers: everyone who sees the memory sees the excerpt, and
    it outlives the chat.
    """
    if message.chat.is_private or message.chat.is_temporary or message.personal:
        return ""
    siblings = Message.objects.filter(chat_id=message.chat_id, personal=PersonalUse.NONE)
    siblings = siblings.exclude(content="").select_related("author", "imported_by")
    if message.superseded_by_id is None:
        siblings = siblings.current()
    before = list(siblings.filter(pk__lt=message.pk).order_by("-pk")[:BEFORE])[::-1]
    after = list(siblings.filter(pk__gt=message.pk).order_by("pk")[:AFTER])
    return "\n".join(
        f"{_speaker(part)}: {cut_at_word(part.content, PART_LENGTH)}" for part in [*before, message, *after]
    )


def _speaker(message: Message) -> str:
    if message.role == MessageRole.ASSISTANT:
        return "Assistant"
    if message.is_imported:
        return imported_label(message)
    return message.author.get_username() if message.author else "User"
