"""Whose rows those of memories are, for Postgres (``workspaces.isolation``)."""

from __future__ import annotations

from workspaces.isolation.rules import PERSON, Rule, of_person, of_place, of_workspace, with_row

_OWN = f"owner_id IS NULL OR owner_id = {PERSON}"
_OF_MEMORY = with_row("memories_memory", "memory_id")
_SHOWN = f"(p.user_id = {PERSON} OR EXISTS (SELECT 1 FROM memories_memory m WHERE m.id = {{row}}.memory_id))"

RULES: dict[str, Rule] = {
    "memories.Memory": of_workspace(_OWN, names="author_id"),
    "memories.Revision": _OF_MEMORY,
    "memories.Asset": _OF_MEMORY,
    "memories.KeptAsIs": _OF_MEMORY,
    "memories.KeptCopy": _OF_MEMORY,
    "memories.MemorySource": _OF_MEMORY,
    "memories.Extraction": of_person(),
    "memories.MemoryNode": of_workspace(),
    "memories.NodeMemory": with_row("memories_memorynode", "node_id"),
    "memories.NodeRelation": with_row("memories_memorynode", "source_id"),
    "memories.RecallQuestion": of_workspace(_OWN),
    "memories.ExpectedMemory": with_row("memories_recallquestion", "question_id"),
    "memories.Receipt": of_workspace(),
    "memories.ReceiptItem": with_row("memories_receipt", "receipt_id", _SHOWN),
    "memories.Refusal": of_workspace(),
    "memories.Tombstone": of_place(),
}
