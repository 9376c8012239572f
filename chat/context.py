"""What the model sees: the stable part first, then the conversation, the recalled memories, and the question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from chat.models import Message, MessageRole
from chat.text import cut_to, escape, prompt_text, tokens
from memories.recall import Recalled
from memoryhub.llm.base import Capabilities, Tool
from memoryhub.llm.base import Message as Prompt
from workspaces.models import Agent

MESSAGES_LOOKED_AT = 200
TOOLS_SHARE = 0.25  # of the room beside the answer, kept free for what tools return
LEAST_QUESTION = 64  # tokens of the question that are shown however little room there is


def build_prompt(
    question: Message,
    used: Sequence[Recalled],
    capabilities: Capabilities,
    *,
    now: datetime,
    agent: Agent | None = None,
    tools: Sequence[Tool] = (),
) -> list[Prompt]:
    """System, as much of the latest history as fits, the recalled block right before the question.

    What stays the same from turn to turn comes first, so that providers can cache it. The budget in tokens is what
    the model's context holds beside its answer. The question is cut only when it alone would not fit.
    """
    system = Prompt("system", system_text(agent, now=now, has_tools=bool(tools)))
    block = recalled_block(used)
    room = room_beside_answer(capabilities) - tokens(system.content) - tokens_of_tools(tools) - tokens(block)
    asked = cut_to(question.content, max(LEAST_QUESTION, room - 16))
    room -= tokens(asked)
    if tools:
        room -= int(room_beside_answer(capabilities) * TOOLS_SHARE)
    prompt = [system, *_history(question, min(room, settings.LLM_HISTORY_TOKENS))]
    if block:
        prompt.append(Prompt("system", block))
    return [*prompt, Prompt("user", asked)]


def room_beside_answer(capabilities: Capabilities) -> int:
    """How many tokens a prompt may have."""
    return capabilities.context_tokens - settings.LLM_MAX_TOKENS


def tokens_of_tools(tools: Sequence[Tool]) -> int:
    return sum(tokens(tool.name + tool.description + json.dumps(dict(tool.parameters))) for tool in tools)


def system_text(agent: Agent | None, *, now: datetime, has_tools: bool) -> str:
    """The part that every turn of a chat begins with; what changes most, the date, is its end."""
    parts = [prompt_text("system")]
    if has_tools:
        parts.append(prompt_text("tools"))
    if agent is not None:
        instructions = "\n".join(escape(line) for line in agent.instructions.splitlines()).strip()
        parts.append(
            f"{prompt_text('agent')}\n<assistant>\nName: {escape(agent.name)}\n{instructions}\n</assistant>"
        )
    return "\n\n".join([*parts, f"Today is {now:%A, %d %B %Y}."])


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
