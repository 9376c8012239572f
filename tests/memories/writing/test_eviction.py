"""Eviction and recording of use: in the right order, concurrently, and never restoring a row."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from memories import tasks
from memories.models import Memory, Scope
from memories.recalling import recall as recall_module
from memories.recalling.loading import mark_accessed
from memories.writing.eviction import evict_least_useful
from memories.writing.gate import delete_memory, edit_memory
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace
from workspaces.models import User

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.usefixtures("fake_embedder")


def noticed(content: str, by: User, *, days_ago: float = 0, **fields: Any) -> Memory:
    fields.setdefault("source_type", "auto_chat")
    return make_memory(content, by, now=NOW - timedelta(days=days_ago), **fields)


def live(person: User) -> set[str]:
    rows = Memory.objects.filter(workspace=default_workspace(person), deleted_at=None)
    return set(rows.values_list("content", flat=True))


def test_the_least_valuable_by_the_formula_go_first(cast: Cast, settings: Settings) -> None:
    person, settings.MAX_MEMORIES = cast.owner, 2
    # Value: a fifth of the recency, which halves in 30 days, and a tenth of the importance.
    noticed("a: 0.2 + 0 = 0.200", person, importance=0.0)
    noticed("b: 0.1 + 0.09 = 0.190", person, days_ago=30, importance=0.9)
    noticed("c: 0.05 + 0.1 = 0.150", person, days_ago=60, importance=1.0)
    used = noticed("d: 0.1 + 0.04 = 0.140, by its last use", person, days_ago=300, importance=0.4)
    noticed("e: 0.1 + 0.03 = 0.130", person, days_ago=30, importance=0.3)
    Memory.objects.filter(pk=used.pk).update(last_accessed_at=NOW - timedelta(days=30))
    place = default_workspace(person).pk
    for cap, gone in ((4, "e"), (3, "d"), (2, "c"), (1, "b")):
        settings.MAX_MEMORIES = cap
        before = live(person)
        assert evict_least_useful(place, None, now=NOW) == 1
        assert [content[0] for content in before - live(person)] == [gone]
    assert evict_least_useful(place, None, now=NOW) == 0
    assert Memory.objects.get(pk=used.pk).revisions.order_by("pk").last().action == "evict"  # type: ignore[union-attr]


def test_what_a_person_saved_or_imported_and_what_is_pinned_stays_and_only_automatic_ones_count(
    cast: Cast, settings: Settings
) -> None:
    person, settings.MAX_MEMORIES = cast.owner, 1
    kept = {
        noticed(f"{source} {n}", person, days_ago=900, importance=0.0, source_type=source).content
        for source in ("user", "import", "zotero")
        for n in range(3)
    }
    kept.add(noticed("pinned", person, days_ago=900, importance=0.0, pinned=True).content)
    noticed("from a chat", person, days_ago=1)
    noticed("by the model", person, source_type="model")
    assert (
        evict_least_useful(default_workspace(person).pk, None, now=NOW) == 2
    )  # the pinned one fills the limit
    assert live(person) == kept
    assert evict_least_useful(default_workspace(person).pk, None, now=NOW) == 0


def test_each_workspace_and_each_owner_of_personal_ones_has_a_cap_of_its_own(
    cast: Cast, settings: Settings
) -> None:
    settings.MAX_MEMORIES = 2
    home = default_workspace(cast.editor)
    for number in range(3):
        noticed(f"shared {number}", cast.editor, workspace=cast.workspace)
        noticed(f"mine {number}", cast.editor, scope=Scope.USER)
    noticed("at home", cast.editor)
    assert evict_least_useful(home.pk, None, now=NOW) == 0
    assert evict_least_useful(home.pk, cast.editor.pk, now=NOW) == 1
    assert evict_least_useful(cast.workspace.pk, None, now=NOW) == 1
    assert Memory.objects.filter(deleted_at=None).count() == 5


def test_a_cap_of_nought_keeps_everything(cast: Cast, settings: Settings) -> None:
    settings.MAX_MEMORIES = 0
    for number in range(3):
        noticed(f"Thing {number}", cast.owner)
    assert evict_least_useful(default_workspace(cast.owner).pk, None, now=NOW) == 0
    assert OrmQ.objects.count() == 0


def test_a_job_is_queued_once_a_transaction_and_only_above_the_cap(
    transactional_db: None, settings: Settings
) -> None:
    settings.MAX_MEMORIES = 3
    person = make_user()
    home = default_workspace(person).pk

    def jobs(saves: int, **fields: Any) -> list[dict[str, Any]]:
        OrmQ.objects.all().delete()
        with transaction.atomic():
            for number in range(saves):
                noticed(f"{Memory.objects.count()} {number} {fields}", person, **fields)
        return [job.kwargs() for job in OrmQ.objects.all()]

    assert jobs(3) == []
    assert jobs(5, source_type="user") == []
    assert jobs(3) == [{"workspace_id": home, "owner_id": None, "agent_id": None}]
    assert jobs(1, source_type="import") == []
    tasks.evict(workspace_id=home, owner_id=None)
    assert Memory.objects.filter(deleted_at=None, source_type="auto_chat").count() == 3


# With two connections


def elsewhere(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.fixture
def person(transactional_db: None, settings: Settings) -> User:
    settings.MAX_MEMORIES = 2
    person = make_user()
    for number in range(4):
        noticed(f"Thing {number}", person, days_ago=100 - number)
    return person


def test_rows_in_use_are_passed_over_without_waiting(person: User) -> None:
    first = Memory.objects.get(content="Thing 0")
    with transaction.atomic():
        edit_memory(first, by=person, now=NOW, importance=0.0)
        elsewhere(lambda: evict_least_useful(default_workspace(person).pk, None, now=NOW)).join(10)
        with transaction.atomic():
            others = Memory.objects.exclude(pk=first.pk)
            assert (
                others.filter(deleted_at__isnull=False).count() == 2
            )  # it did not wait for this transaction
    assert live(person) == {"Thing 0", "Thing 3"}


def test_a_turn_reads_and_notes_its_use_while_rows_are_being_evicted(
    person: User, fake_embedder: FakeEmbedder
) -> None:
    with transaction.atomic():
        list(Memory.objects.select_for_update())  # as eviction locks them
        found: list[int] = []

        def turn() -> None:
            found.append(
                len(
                    recall_module.recall(
                        "Thing", default_workspace(person), person, now=NOW, policy=HERE
                    ).items
                )
            )

        elsewhere(turn).join(10)
        assert found == [4]
    assert not Memory.objects.filter(last_accessed_at__isnull=False).exists()


def test_two_jobs_at_once_remove_the_excess_once(person: User) -> None:
    place = default_workspace(person).pk
    with transaction.atomic():
        assert evict_least_useful(place, None, now=NOW) == 2
        second = elsewhere(lambda: evict_least_useful(place, None, now=NOW))
        second.join(0.3)
    second.join(10)
    assert live(person) == {"Thing 2", "Thing 3"}


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_evicting_what_somebody_just_changed_brings_nothing_back(person: User, change: str) -> None:
    first = Memory.objects.get(content="Thing 0")
    with transaction.atomic():
        if change == "delete":
            delete_memory(first, by=person, now=NOW)
        else:
            edit_memory(first, by=person, now=NOW, pinned=True)
        job = elsewhere(lambda: evict_least_useful(default_workspace(person).pk, None, now=NOW))
        job.join(10)
    evict_least_useful(default_workspace(person).pk, None, now=NOW)
    first.refresh_from_db()
    assert (first.deleted_at is not None, first.pinned) == (change == "delete", change == "edit")
    assert len(live(person)) == 2 - (change == "delete")


def test_noting_the_use_of_what_somebody_is_deleting_neither_waits_nor_brings_it_back(person: User) -> None:
    first = Memory.objects.get(content="Thing 0")
    with transaction.atomic():
        delete_memory(first, by=person, now=NOW)
        elsewhere(lambda: mark_accessed([first], NOW)).join(10)
    mark_accessed([first], NOW)
    first.refresh_from_db()
    assert first.deleted_at == NOW
    assert first.last_accessed_at is None


def test_what_cannot_be_noted_as_used_is_found_all_the_same(person: User) -> None:
    first = Memory.objects.get(content="Thing 0")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        mark_accessed([first], NOW)  # does not raise
    finally:
        connection.close()
    first.refresh_from_db()
    assert first.last_accessed_at is None


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_a_late_vector_waits_for_who_is_changing_the_row_and_is_then_dropped(
    person: User, fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    first = Memory.objects.get(content="Thing 0")
    first.embeddings.all().delete()
    embed, made = fake_embedder.embed, threading.Event()

    def told(texts: list[str]) -> Any:
        vectors = embed(texts)
        if "Thing 0" in texts:
            made.set()
        return vectors

    monkeypatch.setattr(fake_embedder, "embed", told)
    with transaction.atomic():
        if change == "delete":
            delete_memory(first, by=person, now=NOW)
        else:
            edit_memory(first, by=person, now=NOW, content="Another thing altogether")
        job = elsewhere(lambda: tasks.embed_memories(memory_ids=[first.pk]))
        made.wait(10)
        job.join(0.3)
    job.join(10)
    first.refresh_from_db()
    if change == "delete":
        assert first.deleted_at == NOW
        assert not first.embeddings.exists()
    else:
        vector = first.embeddings.get().embedding
        assert vector == pytest.approx(list(embed(["Another thing altogether"])[0]), abs=2e-3)
