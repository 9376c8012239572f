"""In a database whose index lies in parts by place, each statement of the product looks into those of its places alone.

So the place is the key that another system could distribute the same tables by (docs/scale.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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
from memories.recalling.receipts import receipts_for, split_recall, store_receipt
from memories.tidying.lists import without_vector
from memories.tidying.pairs import pairs_in
from memories.usage import live_in
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
# Of the rows of memories: what knows only their keys, and is asked seldom or by jobs. A look into each part is short
# where it is by a key; planning it for all of them is what costs (docs/scale.md).
ROWS_EVERYWHERE = {
    '"memories_memory"."id" = %s': "jobs embed, check and remove what they were given the keys of",
    '"memories_memory"."id" IN (%s)': "the same of several",
    'U0."id" IN (%s)': "and their workspaces",
    "m.id = ANY(%(refs)s::bigint[])": "the same, of their words and vectors",
    '"memories_memory"."public_id" IN (%s)': "citations and imports name public ids",
    '_id" = "memories_memory"."id")': "what hangs on a memory knows its key: files, receipts, questions, notes",
    '_id" = U1."id")': "and so knows the answer that used one",
    '"id" = ("memories_memory"."id")': "who forgets looks for copies wherever they may forget them",
    '"memories_revision"."before"': "and through histories",
    '"source_chat_id"': "what came from a chat lies in its workspace or with one of its people",
    '"source_message_id" IN (%s)': "the same of a message",
    '"memories_memory"."agent_id" IN (%s)': "an assistant that is deleted takes its own along",
    '"may_replace_id" IN (%s)': "a memory that is deleted is replaced by none any more",
    '"memories_memory"."owner_id" = %s OR': "the admin's and a person's lists over everything",
    'MAX("memories_memory"."id")': "the admin looks for parts of words among the newest",
    '"has_vector"': "the admin's list of all memories",
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


def without_key(seen: Watched, allowed: Iterable[str] = (*EVERYWHERE, *ROWS_EVERYWHERE)) -> dict[str, int]:
    return {
        text: parts
        for text, parts in seen.parts.items()
        if parts > PLACES and not any(each in text for each in allowed)
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
        edit_memory(memory, by=owner, now=now, content="The launch is on June 4", key="launch")
        delete_memory(memory, by=owner, now=now)
        restore_memory(memory, by=owner, now=now)
        found = recall("launch", here, owner, agent=agent, reach=HERE, now=timezone.now())
        verdicts = split_recall(found, threshold=0, limit=5)
        store_receipt("msg_parts", found, verdicts, workspace=here, user=owner, threshold=0)
        assert receipts_for(["msg_parts"], owner)["msg_parts"].items.all()
        assert list(live_in(here, owner, now).listed()[:20])
        assert without_key(seen, EVERYWHERE) == {}  # what people wait for all day
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
        for table in ("workspaces_passagevector", "workspaces_passageword", "memories_memory"):
            assert len({part for part in range(PARTS) if f'"{table}_{PARTS}_{part}"' in plan}) <= PLACES
