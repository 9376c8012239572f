"""Messages for strict chat templates: one system message, the first; then user and assistant in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memoryhub.llm.pictures import joined

Body = dict[str, Any]  # a message as it is sent

# How the templates of Mistral, Gemma, Llama 2, Qwen 3.5 and others say so, through vLLM, llama.cpp, TGI and Ollama.
STRICT = re.compile(
    r"roles? must alternate|must alternate between|alternating (?:user|roles)"
    r"|(?:must|should|has to|can only) be (?:at )?the (?:first|beginning|start)"
    r"|only (?:one|a single) system|(?:multiple|two|several) system messages"
    r"|unexpected role|role ['\"]?system['\"]? (?:is )?not allowed",
    re.IGNORECASE,
)
NO_SYSTEM = re.compile(
    r"system (?:role|messages?|prompts?)\b.{0,20}\bnot (?:be )?support|not support.{0,20}\bsystem\b|invalid role:? "
    r"['\"]?system",
    re.IGNORECASE,
)


def fold(messages: Sequence[Body], *, keeps_system: bool = True) -> list[Body]:
    """The same text in the same order. What the system says in between goes to the user message it stands before, and
    neighbours of one role become one. Without ``keeps_system`` the first words go there, too.
    """
    folded: list[Body] = []
    for number, message in enumerate(messages):
        is_head = keeps_system and all(each["role"] == "system" for each in messages[: number + 1])
        role = "user" if message["role"] == "system" and not is_head else message["role"]
        last = folded[-1] if folded else None
        if last is None or role == "tool" or last["role"] != role or "tool_calls" in last:
            folded.append({**message, "role": role})
        else:
            content = joined(last["content"], message["content"])
            folded[-1] = {**last, **message, "role": role, "content": content}
    return folded
