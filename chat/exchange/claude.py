"""Reader of Claude's export: ``conversations.json``, conversations with ``chat_messages``, and ``memories.json``.

A message's text is that of its ``content`` blocks, or else its ``text``. If messages name their parents, the latest
branch is read. Claude's memories are prose, and every sentence becomes a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from chat.exchange.transcripts import (
    Line,
    Said,
    Transcript,
    is_statement,
    moment_of,
    path_to,
    text_of,
    without_bullet,
)
from memories.writing.drafts import cut_at_word

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def is_entry(first: dict[str, Any]) -> bool:
    return "chat_messages" in first or "conversations_memory" in first


def transcript_of(conversation: dict[str, Any]) -> Transcript | None:
    given = conversation.get("chat_messages")
    if not isinstance(given, list):
        return None
    messages = {
        str(message.get("uuid") or number): message
        for number, message in enumerate(given)
        if isinstance(message, dict)
    }
    said = [_said(name, messages[name]) for name in _branch(conversation, messages)]
    return Transcript(
        id=str(conversation.get("uuid") or f"{conversation.get('name')} {conversation.get('created_at')}"),
        title=text_of(conversation.get("name")),
        said=[each for each in said if each is not None],
        began_at=moment_of(conversation.get("created_at")),
        active_at=moment_of(conversation.get("updated_at")),
    )


def statements_of(memory: dict[str, Any]) -> Iterator[Line]:
    """Yield the statements of one entry of ``memories.json``."""
    projects = memory.get("project_memories")
    projects = projects.values() if isinstance(projects, dict) else projects
    texts = [memory.get("conversations_memory"), *(projects if isinstance(projects, Iterable) else ())]
    for text in texts:
        text = text.get("content") if isinstance(text, dict) else text
        for line in text_of(text).splitlines():
            for sentence in SENTENCE_END.split(without_bullet(line) if is_statement(line) else ""):
                if is_statement(sentence):
                    yield {
                        "type": "memory",
                        "scope": "user",
                        "content": cut_at_word(sentence),
                        "source_type": "import",
                        "source_details": {"from": "claude"},
                    }


def _branch(conversation: dict[str, Any], messages: dict[str, Any]) -> list[str]:
    parents = {name: str(message.get("parent_message_uuid") or "") for name, message in messages.items()}
    if not any(parent in messages for parent in parents.values()):
        return list(messages)
    leaf = conversation.get("current_leaf_message_uuid")
    return path_to(leaf if isinstance(leaf, str) and leaf in messages else list(messages)[-1], parents)


def _said(name: str, message: dict[str, Any]) -> Said | None:
    if message.get("sender") not in ("human", "user", "assistant"):
        return None
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    return Said(
        id=name,
        is_user=message["sender"] != "assistant",
        text="\n\n".join(text for text in texts if text) or text_of(message.get("text")) or text_of(content),
        at=moment_of(message.get("created_at")),
        pasted="\n\n".join(filter(None, _attached(message))),
    )


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield the name and text of each pasted text or attached file, or only the name if the export has no text."""
    for key in ("attachments", "files"):
        given = message.get(key)
        for each in given if isinstance(given, list) else ():
            if isinstance(each, dict):
                name, text = text_of(each.get("file_name")), text_of(each.get("extracted_content"))
                yield "\n".join(filter(None, (name, text)))
