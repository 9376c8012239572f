"""What a program's request is made of, for who counts: what we put into it, its tools, and all else."""

from __future__ import annotations

import json

from chat.doors.openai_api.program_request import Body, text_of
from chat.prompting.prompt_parts import MEMORY
from chat.prompting.text import tokens
from memoryhub.llm.base import INSERTED
from memoryhub.llm.usage import Parts


def parts_of_body(body: Body) -> Parts:
    """In estimated tokens."""
    memory = tools = whole = 0
    for message in body["messages"]:
        text = text_of(message)
        size = tokens(text)
        whole += size
        memory += size if INSERTED in message and text.startswith(MEMORY) else 0
        tools += size if message.get("role") in {"tool", "function"} else 0
    described = tokens(json.dumps(body["tools"])) if body.get("tools") else 0
    return Parts(memory, 0, tools + described, whole + described)
