"""The upgrade that gives each key one holder, on rows as the release before left them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from memories.models import Memory
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE, make_agent, make_memory
from tests.steps import do_again, take_back
from workspaces.models import PassageWord

pytestmark = pytest.mark.django_db(transaction=True)
STEP = ("memories", "0018_keys")
# The table of words by its name of then.
WORDS = "CREATE VIEW memories_memoryword AS SELECT place, lexeme, ref memory_id FROM workspaces_passageword"


@pytest.fixture
def upgraded(transactional_db: None) -> Iterator[None]:
    """Whatever a test does, the next finds the database of today."""
    with connection.cursor() as cursor:
        cursor.execute(WORDS)
        yield
        do_again(STEP)
        cursor.execute("DROP VIEW memories_memoryword")


def keyed(memory: Memory, key: str, **fields: object) -> Memory:
    """Past the gate, with the words that its key brought."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memories_memory SET key = %s WHERE id = %s", [key, memory.pk])
    Memory.objects.filter(pk=memory.pk).update(**fields)
    return memory


def test_the_one_changed_last_keeps_its_key_and_the_others_say_where_it_went(
    cast: Cast, upgraded: None
) -> None:
    now, home = timezone.now(), cast.workspace
    agent = make_agent(cast.owner, home)
    older = make_memory("Tea", cast.owner, home, key="drinkable")
    newer, expired = (make_memory(text, cast.owner, home) for text in ("Coffee", "Water"))
    gone, alone = (make_memory(text, cast.owner, home) for text in ("Milk", "Juice"))
    personal = make_memory("Wine", cast.owner, home, scope="user")
    of_agent = make_memory("Beer", cast.owner, home, scope="agent", agent=agent)
    take_back(STEP)
    stem = PassageWord.objects.filter(ref=older.pk, lexeme="drinka")
    assert stem.update(lexeme="drinkabl") == 1  # as words were counted then
    keyed(older, "drinkable", updated_at=now - timedelta(3))
    keyed(newer, "drinkable", updated_at=now - timedelta(2))
    keyed(expired, "drinkable", updated_at=now, expires_at=now - timedelta(1))
    for apart in (personal, of_agent):
        keyed(apart, "drinkable")
    keyed(gone, "drinkable", deleted_at=now)
    keyed(alone, "other")

    do_again(STEP)

    kept = set(Memory.objects.filter(key="drinkable").values_list("content", flat=True))
    assert kept == {"Coffee", "Wine", "Beer", "Milk"}
    assert Memory.objects.get(pk=alone.pk).updated_at == alone.updated_at
    for loser in (older, expired):
        note = loser.revisions.get(action="key")
        assert (note.before, note.by) == ({"key": "drinkable", "key_went_to": newer.public_id}, None)
        loser.refresh_from_db()
        assert loser.updated_at > now and "drinkabl" not in loser.search
    assert not PassageWord.objects.filter(ref=older.pk, lexeme="drinkabl").exists()
    assert PassageWord.objects.filter(ref=older.pk, lexeme="tea").exists()
    assert "Tea" in [
        item.memory.content for item in recall("tea", home, cast.owner, now=now, reach=HERE).items
    ]
    with pytest.raises(IntegrityError):
        Memory.objects.filter(pk=older.pk).update(key="drinkable")


def test_run_again_after_a_build_that_failed(transactional_db: None) -> None:
    """What a concurrent build leaves behind is an index that keeps nothing. The step that builds it, alone."""
    step = import_module("memories.migrations.0018_keys").Migration.operations[-1].database_operations[0]
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX memory_key")
        cursor.execute("CREATE INDEX memory_key ON memories_memory (workspace_id)")
    with connection.schema_editor(atomic=False) as editor:
        step.database_forwards("memories", editor, None, None)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisunique, indisvalid FROM pg_index WHERE indexrelid = 'memory_key'::regclass"
        )
        assert cursor.fetchone() == (True, True)


@pytest.mark.django_db(transaction=False)
def test_who_has_a_key_is_read_off_the_index(cast: Cast) -> None:
    from memories.writing.doubles import _HOLDER

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(  # which of all is cheapest depends on how many rows are thought to be there
            "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'memories_memory'::regclass AND NOT indisunique"
        )
        for (other,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {other}")
        cursor.execute(f"EXPLAIN {_HOLDER}", {"workspace": 1, "key": "drink", "place": 1})
        assert "memory_key" in str(cursor.fetchall())
