"""What a chat is called before anybody names it."""

from __future__ import annotations

from memories.writing.drafts import cut_at_word

TITLE_FROM_MESSAGE = 60


def title_from(content: str) -> str:
    return cut_at_word(" ".join(content.split()), TITLE_FROM_MESSAGE)
