"""Indexes are created where they pay and dropped where they do not; recall is the same with and without them."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, transaction
from django_q.models import Schedule

from memories.indexing import MEMORIES, index_words
from memories.models import Memory
from memoryhub.llm.base import Vectors
from tests.factories import make_user, make_workspace
from workspaces import tasks
from workspaces.index import hybrid_search, index_maintenance
from workspaces.index.embedding import copy_vectors
from workspaces.index.hybrid_search import bm25
from workspaces.index.index_maintenance import maintain_indexes
from workspaces.models import CommonWord, PassageVector, PlaceStatistics, User, VectorIndex, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
MODEL = "it's a model"  # tests the quoting of statements


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Workspace, User]]:
    monkeypatch.setattr(index_maintenance, "INDEX_FROM", 200)
    monkeypatch.setattr(index_maintenance, "DROP_BELOW", 100)
    monkeypatch.setattr(index_maintenance, "COUNT_FROM", 200)
    monkeypatch.setattr(index_maintenance, "FORGET_COUNTS_BELOW", 100)
    user = make_user("olive")
    yield make_workspace(owner=user), user
    with connection.cursor() as cursor:
        for name in present():
            cursor.execute(f'DROP INDEX "{name}"')


def fill(workspace: Workspace, count: int, dimension: int = 32) -> Vectors:
    """Create memories about one of ten things each, with random vectors."""
    Memory.objects.bulk_create(
        Memory(workspace=workspace, content=f"note {n} of thing{n % 10}", content_hash=str(n), created_at=NOW)
        for n in range(count)
    )
    ids = list(Memory.objects.filter(workspace=workspace).order_by("pk").values_list("pk", flat=True))
    made = np.random.default_rng(5).standard_normal((count, dimension)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    copy_vectors(1, ids, [workspace.pk] * count, MODEL, made)
    index_words(list(Memory.objects.filter(pk__in=ids)))
    return made


def present() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'passages_near_%'")
        return [row[0] for row in cursor.fetchall()]


def find(workspace: Workspace, user: User, vector: Vectors, *, exact: bool = False) -> set[tuple[int, float]]:
    where = hybrid_search.search_area(workspace.pk, user.pk)
    assert where is not None

    with transaction.atomic():
        found = hybrid_search.find_candidates(MEMORIES, "xyzzy", (MODEL, vector), where, 20, exact=exact)
    return {(c.ref, round(c.cosine or 0, 3)) for c in found}


@pytest.mark.parametrize("dimension", [32, 4096])
def test_a_large_place_gets_an_index_that_finds_the_same(
    place: tuple[Workspace, User], dimension: int
) -> None:
    workspace, user = place
    made = fill(workspace, 220, dimension)

    said = maintain_indexes(now=NOW)

    assert len(said.built) == 1 and said.built[0] in str(said)
    record = VectorIndex.objects.get()
    assert (record.place, record.model, record.dimension) == (workspace.pk, MODEL, dimension)
    assert present() == [record.name]
    found, exact = find(workspace, user, made[7]), find(workspace, user, made[7], exact=True)
    # Random vectors are all about equally near: bit vectors find most of the nearest, halfvecs all.
    assert len(found & exact) >= (20 if dimension == 32 else 10)
    assert max(found, key=lambda pair: pair[1]) == max(exact, key=lambda pair: pair[1])
    assert str(maintain_indexes(now=NOW)) == "nothing to do"


def test_small_places_get_none(place: tuple[Workspace, User]) -> None:
    fill(place[0], 199)
    assert str(maintain_indexes(now=NOW)) == "nothing to do"
    assert present() == []


def test_an_index_stays_above_the_lower_bound_and_goes_below(place: tuple[Workspace, User]) -> None:
    workspace, _ = place
    fill(workspace, 220)
    maintain_indexes(now=NOW)
    ids = list(PassageVector.objects.order_by("pk").values_list("pk", flat=True))

    PassageVector.objects.filter(pk__in=ids[:100]).update(live=False)
    assert maintain_indexes(now=NOW).dropped == []
    assert len(present()) == 1

    PassageVector.objects.filter(pk__in=ids[:150]).update(live=False)
    assert len(maintain_indexes(now=NOW).dropped) == 1
    assert present() == [] and not VectorIndex.objects.exists()


def test_a_half_made_index_is_dropped_and_built_anew(place: tuple[Workspace, User]) -> None:
    workspace, _ = place
    fill(workspace, 220)
    maintain_indexes(now=NOW)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [present()[0]]
        )
    said = maintain_indexes(now=NOW)
    assert len(said.dropped) == len(said.built) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", [present()[0]])
        assert cursor.fetchone()[0] is True


def test_an_index_that_a_killed_job_left_finished_is_taken_up(place: tuple[Workspace, User]) -> None:
    fill(place[0], 220)
    maintain_indexes(now=NOW)
    VectorIndex.objects.all().delete()
    assert maintain_indexes(now=NOW).built == []
    assert VectorIndex.objects.get().name == present()[0]


def test_no_more_than_the_bound(place: tuple[Workspace, User], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_maintenance, "MOST_INDEXES", 1)
    fill(place[0], 220)
    larger = make_workspace(owner=place[1])
    fill(larger, 230)
    maintain_indexes(now=NOW)
    assert [index.place for index in VectorIndex.objects.all()] == [larger.pk]


def test_only_one_run_at_a_time(place: tuple[Workspace, User]) -> None:
    fill(place[0], 220)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [index_maintenance.LOCK])
        try:
            assert tasks.keep_indexes() == "another run is at it"
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [index_maintenance.LOCK])
    assert present() == []


def test_counts_made_beforehand_change_no_score(place: tuple[Workspace, User]) -> None:
    workspace, user = place
    fill(workspace, 220)
    params = hybrid_search.SearchArea(workspace.pk, user.pk).params
    before = bm25(MEMORIES, "note 17 about thing7", params, 50)
    maintain_indexes(now=NOW)
    assert PlaceStatistics.objects.get().passage_count == 220
    assert CommonWord.objects.get(lexeme="thing7").passage_count == 22
    assert bm25(MEMORIES, "note 17 about thing7", params, 50) == pytest.approx(before)


def test_counts_go_where_a_place_has_become_small(place: tuple[Workspace, User]) -> None:
    workspace, _ = place
    fill(workspace, 220)
    maintain_indexes(now=NOW)
    Memory.objects.filter(workspace=workspace).update(deleted_at=NOW)
    maintain_indexes(now=NOW)
    assert not PlaceStatistics.objects.exists() and not CommonWord.objects.exists()


def test_what_comes_by_itself_is_scheduled_and_mended(db: None) -> None:
    Schedule.objects.exclude(name="workspaces: indexes").delete()
    Schedule.objects.update(func="memories.tasks.keep_indexes", minutes=1)
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    indexes = Schedule.objects.get(name="workspaces: indexes")
    assert (indexes.func, indexes.minutes) == ("workspaces.tasks.keep_indexes", 10)
    wanted = {
        "workspaces.tasks.sweep",
        "memories.tasks.sweep",
        "memories.tasks.sweep_files",
        "chat.tasks.sweep",
    }
    assert wanted <= set(Schedule.objects.values_list("func", flat=True))
