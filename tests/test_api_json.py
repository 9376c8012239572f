"""A memory in JSON: its replaced memory, and that recall and reading return the same."""

import pytest
from django.utils import timezone

from memories.api.memory_requests import described
from memories.api.serializers import MemoryJson
from memories.models import Memory
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE, make_memory


def test_a_replaced_memory_that_was_deleted_is_not_named(cast: Cast) -> None:
    older, newer = (
        make_memory("Blue", cast.owner, cast.workspace),
        make_memory("Red", cast.owner, cast.workspace),
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    assert (
        MemoryJson(described(Memory.objects.filter(pk=newer.pk)).get()).data["may_replace"] == older.public_id
    )
    Memory.objects.filter(pk=older.pk).update(deleted_at=timezone.now())
    assert MemoryJson(described(Memory.objects.filter(pk=newer.pk)).get()).data["may_replace"] is None


@pytest.mark.parametrize("ranking", ["hybrid", "lexical", "semantic", "longterm"])
def test_a_recalled_memory_is_as_one_that_was_read(cast: Cast, ranking: str) -> None:
    make_memory("The house is blue", cast.owner, cast.workspace, key="house", tags=["colour"])
    make_memory("The house is green", cast.editor, cast.workspace, category="fact", pinned=True)
    found = recall(
        "house blue green",
        cast.workspace,
        cast.owner,
        ranking=ranking,
        threshold=0.0,
        policy=HERE,
        now=timezone.now(),
    )
    assert found.items
    for item in found.items:
        memory = described(Memory.objects.filter(pk=item.memory.pk)).get()
        assert MemoryJson(item.memory).data == MemoryJson(memory).data
        assert MemoryJson(memory).data["last_accessed_at"] is not None  # just now
