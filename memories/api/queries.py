"""Memories as the API shows them: with everything a row needs in one query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Value
from rest_framework.response import Response

from memories.api.serializers import MemoryJson
from memories.embedding import searchable
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.versions import etag
from memoryhub.errors import NotFound
from memoryhub.llm.registry import get_embedder


def described(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Each with author, workspace, the memory it may replace, and whether it is ``searchable`` by meaning."""
    by_meaning = searchable() if get_embedder() is not None else Value(False)
    return memories.listed().annotate(searchable=by_meaning).defer("search", "source_excerpt")


def memory_response(memory: Memory, *, status: int = 200, **more: Any) -> Response:
    """One memory as it is now, with its ETag. ``more`` stands beside its fields."""
    row = described(Memory.objects.filter(pk=memory.pk)).first()
    if row is None:
        raise NotFound("This memory was forgotten in the meantime.")
    return Response({**MemoryJson(row).data, **more}, status=status, headers={"ETag": etag(row)})


def memories_json(memories: Iterable[Memory]) -> list[Any]:
    """These memories in this order, in one query."""
    ids = [memory.pk for memory in memories]
    rows = described(Memory.objects.filter(pk__in=ids)).in_bulk()
    return list(MemoryJson([rows[pk] for pk in ids if pk in rows], many=True).data)
