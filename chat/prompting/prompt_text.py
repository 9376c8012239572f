"""Text of prompts: templates, token counts, escaping of stored text, and labels with the author of a text."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from django.utils.translation import gettext as _

from chat.models import Message, MessageQuerySet, MessageRole, PersonalUse
from memories.models import Memory
from memories.models.memory import CATEGORIES
from memories.recalling.workspace_search import Found
from memories.writing.drafts import cut_at_word
from memoryhub.llm.base import BYTES_PER_TOKEN
from memoryhub.llm.base import estimated_tokens as tokens
from memoryhub.localization import isolated
from workspaces.models import User

LOOP = (16, 300)  # characters
PROMPTS = Path(__file__).resolve().parent.parent / "prompts"


@cache
def prompt_text(name: str) -> str:
    return (PROMPTS / f"{name}.md").read_text().strip()


def loop_length(text: str) -> int:
    """Return the length of the repetitions at the end of a text, which occur three times and include a letter, or 0."""
    for size in range(LOOP[0], min(LOOP[1], len(text) // 3) + 1):
        tail = text[-size:]
        if text.endswith(tail * 3) and any(sign.isalpha() for sign in tail):
            return 2 * size
    return 0


def cut_to(text: str, room: int) -> str:
    """Return the beginning of a text with at most ``room`` tokens."""
    if tokens(text) <= room:
        return text
    return text.encode(errors="replace")[: max(0, int((room - 4) * BYTES_PER_TOKEN))].decode(errors="ignore")


# Invisible characters, which hide or reorder text, and characters that look like < and >.
_UNSEEN_RANGES = (
    (0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F),  # control characters except white space
    (0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200B), (0x200E, 0x200F),  # without the joiners between them, which Persian and emoji need
    (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_UNSEEN = [sign for first, last in _UNSEEN_RANGES for sign in range(first, last + 1)]
_ESCAPES: dict[int, str | None] = dict.fromkeys(_UNSEEN)
_ESCAPES |= (
    {ord("&"): "&amp;"}
    | {ord(c): "&lt;" for c in "<\uff1c\ufe64\u2039\u27e8\u3008\u276e\u1438\u02c2\u2329"}
    | {ord(c): "&gt;" for c in ">\uff1e\ufe65\u203a\u27e9\u3009\u276f\u1433\u02c3\u232a"}
)


def escape(text: str) -> str:
    """Return the text escaped, on one line, without invisible characters, so that it has no tag and is one item."""
    return " ".join(text.translate(_ESCAPES).split())


def escaped_lines(text: str) -> str:
    return "\n".join(filter(None, map(escape, text.splitlines())))


def one_line(text: str) -> str:
    """Return the text on one line, without invisible characters. Not escaped, because templates escape."""
    return " ".join(text.translate(dict.fromkeys(_UNSEEN)).split())


SIGNS_OF_NAMES = ".@+_'\u2019-"
_NAME = ("username", "first_name", "last_name")


Attributed = Message | Memory | Found


def imported_label(row: Attributed) -> str:
    """Return a label such as "imported by Ann, said to be from Bob", or "" if the row was not imported."""
    if not row.is_imported:
        return ""
    label = f"imported by {named(row.imported_by)}"
    return f"{label}, said to be from {named(row.written_by)}" if row.written_by else label


def writer_label(row: Attributed, *, is_edited: bool) -> str:
    """Return a label with the importer, or else the author, of a memory or message that may have been edited."""
    return imported_label(row) or f"{'edited by' if is_edited else 'from'} {named(row.written_by)}"


def text_of(row: Message | Memory, *, names_people: bool = False) -> str:
    """Return a text for a prompt, labelled with its importer, if any, or with ``names_people`` also its author."""
    label = writer_label(row, is_edited=False) if names_people else imported_label(row)
    return f"[{label}]\n{row.content}" if label else row.content


def said_by_several(messages: Iterable[Message]) -> bool:
    return len({each.author_id for each in messages if each.role == MessageRole.USER}) > 1


def with_labels(messages: MessageQuerySet, *more: str) -> MessageQuerySet:
    """Load only the fields of messages that ``text_of`` reads for text and label, and the fields ``more``."""
    names = (f"{person}__{name}" for person in ("author", "imported_by") for name in _NAME)
    return messages.select_related("author", "imported_by").only(
        "role", "content", "imported_at", *names, *more
    )


def named(user: User | None) -> str:
    """Return a person's display name, followed by the user name if it differs, since display names are not unique."""
    if user is None:
        return name_of(None)
    username = quoted(user.get_username())
    return username if user.shown_name == user.get_username() else f"{quoted(user.shown_name)} {username}"


def quoted(text: str) -> str:
    """Return a person's text in quotes for a label, without characters that could end a quote, a field or a label."""
    signs = (" " if unicodedata.category(s)[0] in "PS" and s not in SIGNS_OF_NAMES else s for s in text)
    return f'"{escape("".join(signs))}"'


def category_label(memory: Memory) -> str:
    """Return the memory's category for use in a label. A custom category is quoted, since a user wrote it."""
    category = memory.category or ""
    return category if category in ("", *CATEGORIES) else f"category {quoted(category)}"


def validity_label(memory: Memory) -> str:
    """Return the period in which a memory is valid, "" if it is unlimited."""
    bounds = [("from", memory.valid_from), ("until", memory.valid_to)]
    return " ".join(f"{word} {moment:%Y-%m-%d}" for word, moment in bounds if moment is not None)


def name_of(user: User | None) -> str:
    return user.shown_name if user else "somebody who left"


def imported(row: Attributed) -> str:
    """Return a sentence, in the reader's language, that says who imported a row and under whose name."""
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
    """Return a sentence, in the reader's language, that says why the answer to this question is hidden from them."""
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
    """Return an excerpt of the chat: two messages before this one, the message, and one after it, one line each.

    Return "" for private and temporary chats and for personal answers, because everyone who can see the memory can see
    the excerpt, even after the chat is deleted.
    """
    if message.personal or not message.chat.is_shared:
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
