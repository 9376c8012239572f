"""In a database whose index lies in parts by place, each statement of the product looks into those of its places alone.

So the place is the key that another system could distribute the same tables by (docs/scale.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from memories import tasks
from memories.forgetting.forget import forget_memories, purge
from memories.models import Memory, Scope
from memories.recalling.recall import recall
from memories.recalling.recall_test import state_of
from memories.tidying.lists import without_vector
from memories.tidying.pairs import pairs_in
from memories.writing.gate import Draft, delete_memory, edit_memory, save_memory
from memories.writing.many import save_memories
from memories.writing.undoing import restore_memory
from tests.factories import HERE, make_artifact, make_document, make_memory
from tests.parted import PARTS, TABLE, Watched, parted, watched
from tests.routes import ROWS
from tests.test_access_matrix import ask
from tests.world import World
from workspaces.artifacts import artifacts
from workspaces.documents import documents
from workspaces.documents.finding import find_in
from workspaces.documents.forgetting import remove
from workspaces.index import filling, indexes, reembedding
from workspaces.models import Artifact, Document, EmbeddingModel

pytestmark = pytest.mark.django_db
PLACES = 3  # a search looks at a workspace, its person's own place, and an assistant's
# What looks into every part, by what stands in it, and why it may.
EVERYWHERE = {
    "GROUP BY place, kind, model, dimension, tableoid": "the job that builds indexes counts all places",
    f"LIMIT {filling.SWEEP}": "what no job embedded is looked for everywhere",
    "WHERE id > %(after)s AND model = %(label)s": "vectors of a retired model go, wherever they are",
}


@pytest.fixture(scope="module", autouse=True)
def in_parts(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), parted():
        yield


@pytest.fixture(scope="module")
def module_transaction(in_parts: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As everywhere (tests/conftest.py), in parts."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def without_key(seen: Watched) -> dict[str, int]:
    return {
        text: parts
        for text, parts in seen.parts.items()
        if parts > PLACES and not any(each in text for each in EVERYWHERE)
    }


def test_of_every_route(world: World) -> None:
    with watched() as seen:
        for row in ROWS:
            if not row.in_threads:
                with transaction.atomic():
                    ask(row, world.address(row), world.data(row), world.cast.owner)
                    transaction.set_rollback(True)
    assert without_key(seen) == {}
    assert sum(bool(TABLE.search(text)) and parts > 0 for text, parts in seen.parts.items()) > 20


def test_of_memories(world: World) -> None:
    cast, now = world.cast, timezone.now()
    here, owner = cast.workspace, cast.owner
    with watched() as seen:
        agent = here.agents.get()
        memory = make_memory("The launch is on May 4", owner, here)
        make_memory("The launch is on May 5", owner, here, agent=agent, scope=Scope.AGENT)
        own = make_memory("I am vegetarian", owner, scope=Scope.USER)
        for ranking in ("hybrid", "semantic", "longterm", "lexical"):
            assert recall(
                "when is the launch?",
                here,
                owner,
                agent=agent,
                ranking=ranking,
                reach=HERE,
                now=timezone.now(),
            ).items
        save_memory(
            Draft(content="The launch is on May 4th", workspace=here, author=owner), by=owner, now=now
        )
        drafts = [Draft(content=f"Room {each} is blue", workspace=here, author=owner) for each in range(30)]
        save_memories(drafts, by=owner, now=now)
        edit_memory(memory, by=owner, now=now, content="The launch is on June 4")
        delete_memory(memory, by=owner, now=now)
        restore_memory(memory, by=owner, now=now)
        memory.embeddings.all().delete()
        assert without_vector(here, owner, now).filter(pk=memory.pk).exists()
        tasks.embed_memories(memory_ids=[memory.pk])
        assert memory.embeddings.exists()
        pairs_in(here, owner)
        state_of(here)
        forget_memories(Memory.objects.filter(pk__in=[memory.pk, own.pk]), by=owner, now=now)
        delete_memory(make_memory("Olive likes tea", owner, here), by=owner, now=now)
        assert purge(now=now + timedelta(days=4000), seconds=60)
    assert without_key(seen) == {}


def test_of_documents_and_artifacts(world: World) -> None:
    cast, now = world.cast, timezone.now()
    here, owner = cast.workspace, cast.owner
    with watched() as seen:
        document = make_document(owner, here, "The oven is turned off at night. " * 100)
        found = Document.objects.filter(pk=document.pk)
        assert find_in(found, "when is the oven off?", here, owner, limit=3, reach=HERE)
        documents.move(document, None, by=owner, now=now)
        document.refresh_from_db()
        documents.delete(document, by=owner, now=now)
        documents.restore(document, by=owner, now=now)
        document.refresh_from_db()
        assert remove(document)["document passages"]
        page = make_artifact(owner, here)
        artifacts.change(page, by=owner, now=now, content="print(2)")
        artifacts.move(page, None, by=owner)
        page.refresh_from_db()
        filling.fill_gaps()
        artifacts.delete(page, by=owner, now=now)
        artifacts.restore(page, by=owner, now=now)
        Artifact.objects.filter(pk=page.pk).delete()
    assert without_key(seen) == {}


def test_a_statement_without_the_key_is_noticed(world: World) -> None:
    with watched() as seen, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM workspaces_passagevector WHERE kind = 1 AND ref = 7")
        cursor.execute("SELECT 1 FROM workspaces_passagevector WHERE kind = 1 AND ref = 7 AND place = 7")
    assert sorted(seen.parts.values()) == [1, PARTS]
    assert list(without_key(seen).values()) == [PARTS]


def test_exceptions_are_some(world: World) -> None:
    """Each is asked, or it would have no business in the list; in how many parts is up to what the planner knows."""
    with watched() as seen, connection.cursor() as cursor:
        cursor.execute(indexes._LIVE_VECTORS, [1])
        EmbeddingModel.objects.create(
            label="old", name="old", dimension=3, state="retired", started_at=timezone.now(),
            retired_at=timezone.now() - timedelta(hours=1),
        )  # fmt: skip
        reembedding.clean(seconds=10)
        filling.fill_gaps()
    for each in EVERYWHERE:
        assert any(parts > 0 for text, parts in seen.parts.items() if each in text), each


def test_recall_is_planned_for_its_parts_alone(world: World) -> None:
    cast = world.cast
    with CaptureQueriesContext(connection) as captured:
        assert recall(
            "when is the deadline?", cast.workspace, cast.owner, reach=HERE, now=timezone.now()
        ).items
    arms = [query["sql"] for query in captured.captured_queries if TABLE.search(query["sql"])]
    assert len(arms) >= 3
    for arm in arms:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT json) {arm}")
            (plan,) = cursor.fetchone()
        plan = json.dumps(plan)
        for table in ("workspaces_passagevector", "workspaces_passageword"):
            assert len({part for part in range(PARTS) if f'"{table}_{PARTS}_{part}"' in plan}) <= PLACES
