"""What a prompt is made of, for who counts: recalled memories, documents, tools, and all else."""

from __future__ import annotations

from collections.abc import Sequence

from chat.prompting.context import tokens_of_tools
from chat.prompting.text import tokens
from memoryhub.llm.base import Message, Tool
from memoryhub.llm.metering import Parts

# Blocks of ours come from nobody but us: what a person writes is never a system message.
MEMORY, DOCUMENTS = ("<recalled-memories>", "<profile>"), "<documents>"


def parts_of(messages: Sequence[Message], tools: Sequence[Tool]) -> Parts:
    """In estimated tokens. Tools: what they are, what they were asked and what they returned."""
    memory = documents = asked = whole = 0
    for message in messages:
        calls = sum(tokens(call.name + call.arguments) for call in message.tool_calls)
        size = tokens(message.content) + calls
        whole += size
        asked += size if message.role == "tool" else calls
        if message.role == "system":
            memory += size if message.content.startswith(MEMORY) else 0
            documents += size if message.content.startswith(DOCUMENTS) else 0
    described = tokens_of_tools(tools)
    return Parts(memory, documents, asked + described, whole + described)
