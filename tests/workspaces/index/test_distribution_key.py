"""Each statement on the large tables has the column by which a distributed database could shard them (docs/scale.md).

Statements are recorded as sent, without those of triggers.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.utils import timezone
from psycopg import sql

from memories import tasks
from memories.access import live_in
from memories.forgetting.for_good import forget_memories, purge
from memories.models import Memory, Scope
from memories.recalling.recall import recall, receipts_for, split_recall, store_receipt
from memories.recalling.recall_tests import state_of
from memories.tidy import pairs_in, without_vector
from memories.writing.changing import restore_memory
from memories.writing.gate import Draft, delete_memory, edit_memory, save_memory
from tests.bulk import save_memories
from tests.copies import copied
from tests.factories import HERE, make_artifact, make_document, make_memory
from tests.world import World
from workspaces import artifacts
from workspaces.documents import documents
from workspaces.documents.documents import remove
from workspaces.documents.search import find_in
from workspaces.index import index_maintenance, reembedding
from workspaces.models import Artifact, Document, EmbeddingModel

pytestmark = pytest.mark.django_db
KEYS = {
    "workspaces_passagevector": "place",
    "workspaces_passageword": "place",
    "workspaces_commonword": "place",
    "memories_memory": "workspace_id",
}
TABLE = re.compile(rf"\b({'|'.join(KEYS)})\b")
# Statements on all scopes, by a part of their text, and why they may be.
EVERYWHERE = {
    "memories_memory WITH NO DATA": "an empty table like it reads no row",
    "generate_series(1, %s)": "numbers for new rows read none",
    "GROUP BY place, kind, model, dimension": "the job that builds indexes counts all places",
    f"LIMIT {reembedding.SWEEP}": "what no job embedded is looked for everywhere",
    "WHERE id > %(after)s AND model = %(label)s": "vectors of a retired model go, wherever they are",
}
# Statements on memories by primary key. They are rare, or of jobs.
BY_KEY = {
    '"memories_memory"."id" = %s': "jobs embed, check and remove what they were given the keys of",
    '"memories_memory"."id" IN (%s)': "the same of several",
    'U0."id" IN (%s)': "and their workspaces",
    "WHERE id = ANY(%s) ORDER BY id FOR": "they hold the rows of what they store vectors of",
    "m.id = ANY(%(refs)s::bigint[])": "the same, of their words and vectors",
    '"memories_memory"."public_id" IN (%s)': "citations and imports name public ids",
    '_id" = "memories_memory"."id")': "what hangs on a memory knows its key: files, receipts, questions, notes",
    '"source_chat_id"': "what came from a chat lies in its workspace or with one of its people",
    '"source_message_id" IN (%s)': "the same of a message",
    '"memories_memory"."agent_id" IN (%s)': "an assistant that is deleted takes its own along",
    '"may_replace_id" IN (%s)': "a memory that is deleted is replaced by none any more",
    '"replaced_by_id" IN (%s)': "the same of a memory that had replaced others",
    '"owner_id" = %s AND "memories_memory"."scope" = %s': "clearing counts one person's own by their index",
    'MAX("memories_memory"."id")': "the admin looks for parts of words among the newest",
}


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Record the statements on the large tables, with lists of values of one length."""
    seen: set[str] = set()

    def record(execute: Any, statement: Any, params: Any, many: bool, context: Any) -> Any:
        text = statement.as_string() if isinstance(statement, sql.Composable) else str(statement)
        if TABLE.search(text):
            seen.add(" ".join(re.sub(r"(%s, )+%s", "%s", text).split()))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(record):
        yield seen


def names_key(statement: str) -> bool:
    """Return whether each large table in it is compared by its key, or gets rows with it."""
    return all(
        re.search(
            rf'\b{key}"? ?(=|IN\b)|= (\w+|"\w+")\."?{key}\b|INSERT INTO "?{table}"? \([^)]*\b{key}\b',
            statement,
        )
        for table, key in KEYS.items()
        if re.search(rf"\b{table}\b", statement)
    )


def without_key(statements: set[str], *allowed: dict[str, str]) -> list[str]:
    return [
        text
        for text in sorted(statements)
        if not names_key(text) and not any(part in text for reasons in allowed for part in reasons)
    ]


def of_memories(world: World) -> set[str]:
    cast, now = world.cast, timezone.now()
    here, owner = cast.workspace, cast.owner
    with recorded() as seen:
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
                policy=HERE,
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
        found = recall("launch", here, owner, agent=agent, policy=HERE, now=timezone.now())
        verdicts = split_recall(found, threshold=0, limit=5)
        store_receipt("msg_parts", found, verdicts, workspace=here, user=owner, threshold=0)
        assert receipts_for(["msg_parts"], owner)["msg_parts"].items.all()
        assert list(live_in(here, owner, now).listed()[:20])
        assert without_key(seen, EVERYWHERE) == []  # what people do all day
        memory.embeddings.all().delete()
        assert without_vector(here, owner, now).filter(pk=memory.pk).exists()
        tasks.embed_memories(memory_ids=[memory.pk])
        assert memory.embeddings.exists()
        pairs_in(here, owner, timezone.now())
        state_of(here)
        forget_memories(Memory.objects.filter(pk__in=[memory.pk, own.pk]), by=owner, now=now)
        delete_memory(make_memory("Olive likes tea", owner, here), by=owner, now=now)
        assert purge(now=now + timedelta(days=4000), seconds=60)
    return seen


def of_documents_and_artifacts(world: World) -> set[str]:
    cast, now = world.cast, timezone.now()
    here, owner = cast.workspace, cast.owner
    with recorded() as seen:
        document = make_document(owner, here, "The oven is turned off at night. " * 100)
        found = Document.objects.filter(pk=document.pk)
        assert find_in(found, "when is the oven off?", here, owner, limit=3, policy=HERE)
        documents.move(document, None, by=owner, now=now)
        document.refresh_from_db()
        documents.delete(document, by=owner, now=now)
        documents.restore(document, by=owner, now=now)
        document.refresh_from_db()
        assert remove(document)["document passages"]
        page = make_artifact(owner, here)
        artifacts.update_artifact(page, by=owner, now=now, content="print(2)")
        artifacts.move(page, None, by=owner)
        page.refresh_from_db()
        reembedding.fill_gaps()
        artifacts.delete(page, by=owner, now=now)
        artifacts.restore(page, by=owner, now=now)
        Artifact.objects.filter(pk=page.pk).delete()
    return seen


def of_jobs(world: World) -> set[str]:
    with recorded() as seen, connection.cursor() as cursor:
        cursor.execute(index_maintenance._LIVE_VECTORS, [1])
        EmbeddingModel.objects.create(
            label="old", name="old", dimension=3, state="retired", started_at=timezone.now(),
            retired_at=timezone.now() - timedelta(hours=1),
        )  # fmt: skip
        reembedding.clean(seconds=10)
        reembedding.fill_gaps()
    return seen


def faults_of_statements(of_routes: set[str], world: World) -> list[str]:
    """Return statements without their key, of routes and of all else, and exceptions that none of them needs.

    The access matrix, which sends the requests of every route, asserts that there are none.
    """
    seen = of_routes.copy()
    for record in (of_memories, of_documents_and_artifacts, of_jobs):
        with transaction.atomic():
            seen |= record(copied(world))
            transaction.set_rollback(True)
    without = without_key(seen)
    unused = [part for part in (*EVERYWHERE, *BY_KEY) if not any(part in text for text in without)]
    return without_key(seen, EVERYWHERE, BY_KEY) + unused


def test_every_large_table_has_its_key_as_a_column() -> None:
    tables = {model._meta.db_table: model for model in apps.get_models()}
    for table, key in KEYS.items():
        column = next(field for field in tables[table]._meta.concrete_fields if field.column == key)
        assert not column.null


def test_a_statement_without_the_key_is_noticed() -> None:
    for statement, has_it in [
        ("SELECT 1 FROM workspaces_passagevector WHERE kind = 1 AND ref = 7", False),
        ("SELECT 1 FROM workspaces_passagevector v WHERE kind = 1 AND ref = 7 AND v.place = 7", True),
        (
            'SELECT "memories_memory"."workspace_id" FROM "memories_memory" WHERE "memories_memory"."id" = 7',
            False,
        ),
        ('SELECT 1 FROM "memories_memory" WHERE "memories_memory"."workspace_id" IN (%s)', True),
        ('INSERT INTO "memories_memory" ("public_id", "workspace_id") VALUES (%s)', True),
    ]:
        assert names_key(statement) is has_it, (statement, has_it)
