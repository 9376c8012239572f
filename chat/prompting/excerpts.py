"""The messages around one: how a memory shows, and finds again, where it came from."""

from __future__ import annotations

from chat.models import Message, MessageRole, PersonalUse
from chat.prompting.labels import imported_label
from memories.writing.drafts import cut_at_word

BEFORE, AFTER = 2, 1
PART_LENGTH = 1000


def excerpt_around(message: Message) -> str:
    """Two messages before, the message, one after, a line each with who spoke. Secrets are taken out by the gate.

    Nothing of a private or temporary chat, nor of a personal answer: an excerpt is shown to whoever sees the memory,
    and is kept when the chat is not.
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
