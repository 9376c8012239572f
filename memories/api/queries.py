"""Memories as the API shows them: with everything a row needs in one query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Value

from memories.api.serializers import MemoryJson
from memories.embedding import searchable
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memoryhub.llm.registry import get_embedder


def described(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Each with author, workspace, the memory it may replace, and whether it is ``searchable`` by meaning."""
    by_meaning = searchable() if get_embedder() is not None else Value(False)
    return memories.listed().annotate(searchable=by_meaning).defer("search", "source_excerpt")


def memory_json(memory: Memory) -> Any:
    """One memory as it is now."""
    return MemoryJson(described(Memory.objects.filter(pk=memory.pk)).get()).data


def memories_json(memories: Iterable[Memory]) -> list[Any]:
    """These memories in this order, in one query."""
    ids = [memory.pk for memory in memories]
    rows = described(Memory.objects.filter(pk__in=ids)).in_bulk()
    return [MemoryJson(rows[pk]).data for pk in ids if pk in rows]
