"""The tables of vectors and words under their new names: every row there was, and none is left behind half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from memories.models import Memory
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.steps import do_again, take_back
from workspaces.models import EmbeddingModel, PassageVector, PassageWord

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = (("workspaces", "0014_passages"), ("workspaces", "0015_passage_keys"), ("memories", "0020_passages"))
# The kinds of later are taken along by it, so it is put aside; what of then goes in its place.
ASIDE = """
ALTER FUNCTION workspaces_forget_passages() RENAME TO forget_passages_of_today;
CREATE FUNCTION workspaces_forget_passages() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
"""
BACK_IN_PLACE = """
DROP FUNCTION workspaces_forget_passages();
ALTER FUNCTION forget_passages_of_today() RENAME TO workspaces_forget_passages;
"""
VECTOR = "memory_id, place, model, dimension, live, embedding::text, statement::text"
ROWS = {
    "memories_memoryembedding": VECTOR,
    "memories_memoryword": "place, lexeme, memory_id, weight",
}


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def upgraded(transactional_db: None) -> Iterator[None]:
    """Whatever a test does, the next finds the database of today."""
    run(ASIDE)
    yield
    do_again(*STEPS)
    take_back(STEPS[-1])
    run(BACK_IN_PLACE)
    do_again(STEPS[-1])


def rows(table: str, columns: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3")
        return cursor.fetchall()


def constraints() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indisvalid AND indrelid IN "
            "('workspaces_passagevector'::regclass, 'workspaces_passageword'::regclass)"
        )
        return {row[0] for row in cursor.fetchall()}


@pytest.fixture
def before(cast: Cast, upgraded: None) -> dict[str, list[tuple[object, ...]]]:
    """Memories as the release before keeps them, and every row that it has about them: the way back from today."""
    for text in ("The office is in Lisbon", "Mona keeps bees", "The invoice goes out on Mondays"):
        make_memory(text, cast.editor, cast.workspace, source_excerpt=f"Somebody said: {text}")
    vectors = rows("workspaces_passagevector", VECTOR.replace("memory_id", "ref"))
    take_back(*reversed(STEPS))
    assert rows("memories_memoryembedding", VECTOR) == vectors
    run("UPDATE memories_embeddingmodel SET reached_id = 7, refused_ids = '{3,5}'")
    return {table: rows(table, columns) for table, columns in ROWS.items()}


def test_killed_while_it_builds_it_goes_on_with_every_row_and_there_is_a_way_back(
    before: dict[str, list[tuple[object, ...]]], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CursorWrapper, "execute", killed_at_the_words(CursorWrapper.execute))
        with pytest.raises(DatabaseError):
            do_again(*STEPS)
    assert "one_vector_a_passage" in constraints() and "memories_memoryword_pkey" in constraints()
    # What a server that was killed leaves of a concurrent build.
    run("CREATE INDEX workspaces_passageword_pkey ON workspaces_passageword (place)")
    run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'workspaces_passageword_pkey'::regclass")
    do_again(*STEPS)
    for (table, columns), now in zip(ROWS.items(), (PassageVector, PassageWord), strict=True):
        kept = rows(now._meta.db_table, columns.replace("memory_id", "ref"))
        assert kept == before[table] and len(kept) >= 3
        assert set(now.objects.values_list("kind", flat=True)) == {1}
    take_back(*reversed(STEPS))
    assert {table: rows(table, columns) for table, columns in ROWS.items()} == before
    do_again(*STEPS)
    assert constraints() == {
        "memories_memoryembedding_pkey",
        "one_vector_a_passage",
        "passage_of_place",
        "workspaces_passageword_pkey",
    }
    model = EmbeddingModel.objects.get()
    assert (model.reached, model.refused) == ({"1": 7}, {"1": [3, 5]})
    found = recall("where is the office", cast.workspace, cast.editor, reach=HERE, now=timezone.now()).items
    assert found[0].memory.content == "The office is in Lisbon" and found[0].parts["words"] > 0
    Memory.objects.all().delete()
    assert not PassageVector.objects.exists() and not PassageWord.objects.exists()
    assert_who_may_see_embedding_models_may_see_them_still()


def killed_at_the_words(usual: Callable[..., object]) -> Callable[..., object]:
    def execute(self: CursorWrapper, sql: object, params: object = None) -> object:
        if "INDEX CONCURRENTLY workspaces_passageword_pkey" in str(sql):
            raise DatabaseError("the server closed the connection unexpectedly")
        return usual(self, sql, params)

    return execute


def assert_who_may_see_embedding_models_may_see_them_still() -> None:
    allowed = Permission.objects.filter(codename="view_embeddingmodel").values_list(
        "content_type__app_label", flat=True
    )
    assert list(allowed) == ["workspaces"]
    assert not Permission.objects.filter(codename__contains="memoryembedding").exists()
