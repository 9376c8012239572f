"""What the model sees: the stable part first, then the conversation, the recalled memories, and the question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from django.conf import settings

from chat.models import Message, MessageRole
from memories.recall import Recalled
from memoryhub.llm.base import Capabilities
from memoryhub.llm.base import Message as Prompt

PROMPTS = Path(__file__).parent / "prompts"
CHARACTERS_PER_TOKEN = 3.2  # of English, on the careful side
MESSAGES_LOOKED_AT = 200


@cache
def prompt_text(name: str) -> str:
    return (PROMPTS / f"{name}.md").read_text().strip()


def tokens(text: str) -> int:
    """About how many tokens a text costs; no tokenizer is asked, since every model has another."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 4


def build_prompt(
    question: Message, used: Sequence[Recalled], capabilities: Capabilities, *, now: datetime
) -> list[Prompt]:
    """System, as much of the latest history as fits, the recalled block right before the question.

    The budget in tokens is what the model's context holds beside its answer. The question is cut only when it alone
    would not fit.
    """
    system = Prompt("system", prompt_text("system").replace("{date}", f"{now:%A, %d %B %Y}"))
    block = recalled_block(used)
    room = capabilities.context_tokens - settings.LLM_MAX_TOKENS - tokens(system.content) - tokens(block)
    asked = question.content[: max(200, int((room - 16) * CHARACTERS_PER_TOKEN))]
    room = min(room - tokens(asked), settings.LLM_HISTORY_TOKENS)
    prompt = [system, *_history(question, room)]
    if block:
        prompt.append(Prompt("system", block))
    return [*prompt, Prompt("user", asked)]


def recalled_block(used: Sequence[Recalled]) -> str:
    """The one block of recalled memories, or nothing. Stored text is data: it cannot close the block or open a tag."""
    if not used:
        return ""
    lines = [prompt_text("recalled")]
    for item in used:
        memory = item.memory
        label = f"{memory.category or 'memory'}, {memory.created_at:%Y-%m-%d}"
        lines.append(f"- [{memory.public_id}] ({escape(label)}) {escape(memory.content)}")
    return "<recalled-memories>\n" + "\n".join(lines) + "\n</recalled-memories>"


# Signs that nobody sees, by which text hides from its reader or shows in another order, and doubles of < and >.
_UNSEEN = [0x200B, 0x2060, 0xFEFF, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_UNSEEN += range(0xE0000, 0xE0080)
_ESCAPES: dict[int, str | None] = dict.fromkeys(_UNSEEN)
_ESCAPES |= (
    {ord("&"): "&amp;"}
    | {ord(c): "&lt;" for c in "<\uff1c\ufe64"}
    | {ord(c): "&gt;" for c in ">\uff1e\ufe65"}
)


def escape(text: str) -> str:
    """``<``, ``>`` and ``&`` escaped, nothing unseen, on one line: an item can be neither a tag nor a second item."""
    return " ".join(text.translate(_ESCAPES).split())


def _history(question: Message, room: int) -> list[Prompt]:
    """The latest messages before the question that fit in ``room`` tokens, oldest first, beginning with a person."""
    earlier = Message.objects.filter(chat_id=question.chat_id, pk__lt=question.pk).exclude(content="")
    chosen: list[Prompt] = []
    for message in earlier.only("role", "content").order_by("-pk")[:MESSAGES_LOOKED_AT]:
        room -= tokens(message.content)
        if room < 0:
            break
        chosen.append(Prompt("user" if message.role == MessageRole.USER else "assistant", message.content))
    while chosen and chosen[-1].role == "assistant":
        chosen.pop()
    return chosen[::-1]
