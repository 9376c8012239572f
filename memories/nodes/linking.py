"""Links between topics and the memories that contain their names, made when either is saved."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from memories.models import Memory, MemoryNode, NodeMemory


def fold(name: str) -> str:
    """Normalise a name for comparison: case-folded and in Unicode NFC."""
    composed = unicodedata.normalize("NFC", name)
    return unicodedata.normalize("NFC", composed.casefold())


def mentions(text: str, name: str) -> bool:
    """Return whether the text contains the name as whole words, ignoring case."""
    return re.search(whole_words(fold(name)), fold(text)) is not None


def whole_words(name: str) -> str:
    """Return a regular expression, valid in Python and Postgres, that matches the name as whole words."""
    before = r"(?<!\w)" if _has_spaces_around_words(name[0]) else ""
    after = r"(?!\w)" if _has_spaces_around_words(name[-1]) else ""
    return before + re.escape(name) + after


def link_to_named_topics(memories: Sequence[Memory]) -> None:
    """Link memories to the topics that gather by name and whose name they contain. One query without such topics."""
    topics: dict[int, list[MemoryNode]] = {}
    workspaces = {memory.workspace_id for memory in memories}
    for node in MemoryNode.objects.filter(workspace__in=workspaces, gathers_by_name=True):
        topics.setdefault(node.workspace_id, []).append(node)
    links = [
        NodeMemory(node=node, memory=memory)
        for memory in memories
        for node in topics.get(memory.workspace_id, ())
        if mentions(memory.content, node.name)
    ]
    NodeMemory.objects.bulk_create(_without_unlinked(links), ignore_conflicts=True)


def link_memories_that_name(node: MemoryNode) -> None:
    """Link all memories of the workspace that contain the topic's name, including everybody's personal ones."""
    rows = Memory.objects.live().filter(workspace=node.workspace_id, content__icontains=node.name)
    links = [
        NodeMemory(node=node, memory_id=pk)
        for pk, content in rows.values_list("pk", "content").iterator(chunk_size=1000)
        if mentions(content, node.name)
    ]
    NodeMemory.objects.bulk_create(_without_unlinked(links), batch_size=1000, ignore_conflicts=True)


def _without_unlinked(links: Sequence[NodeMemory]) -> list[NodeMemory]:
    """Drop links that a person has removed before. One query if there are links, else none."""
    nodes = {link.node_id for link in links}
    rows = MemoryNode.unlinked.through.objects.filter(memorynode__in=nodes) if nodes else None
    taken_out = set(rows.values_list("memorynode", "memory")) if rows is not None else set()
    return [link for link in links if (link.node_id, link.memory_id) not in taken_out]


def _has_spaces_around_words(sign: str) -> bool:
    """Return False for characters of scripts that are written without spaces between words."""
    name = unicodedata.name(sign, "")
    return not name.startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))
