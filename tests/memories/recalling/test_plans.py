"""Query plans of recall: it uses the indexes of its scopes, however large the tables are."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.indexing import MEMORIES, index_words
from memories.judging.secret_filter import RULES
from memories.models import Memory
from memories.recalling.recall import recall
from memories.writing.gate import excess
from tests.conftest import Cast
from tests.factories import HERE, make_workspace
from tests.fakes.embedder import FakeEmbedder
from workspaces.index import hybrid_search
from workspaces.index.embedding import active_or_first, copy_vectors

pytestmark = pytest.mark.django_db
BIG = {"memories_memory", "workspaces_passagevector", "workspaces_passageword"}
ROWS = 3_000


@pytest.fixture
def grown(cast: Cast, fake_embedder: FakeEmbedder) -> Cast:
    """Create a hundred memories here and three thousand elsewhere, enough to make a full scan more expensive."""
    model = active_or_first()
    assert model is not None
    elsewhere = make_workspace(owner=cast.stranger)
    for workspace, count in ((cast.workspace, 100), (elsewhere, ROWS)):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO memories_memory (public_id, workspace_id, scope, content, tags, importance, pinned,"
                " source_type, source_chat_id, source_message_id, source_excerpt, source_details, content_hash,"
                " review, secret_rules, created_at, updated_at)"
                " SELECT 'mem_' || substr(md5(%s || n::text), 1, 24), %s, 'workspace',"
                " 'note ' || n || ' of thing' || n %% 9, '{}',"
                " 0.5, false, 'user', '', '', '', '{}', n::text, '', %s, now(), now()"
                " FROM generate_series(1, %s) n",
                [str(workspace.pk), workspace.pk, RULES, count],
            )
        ids = list(Memory.objects.filter(workspace=workspace).values_list("pk", flat=True))
        vectors = np.random.default_rng(3).standard_normal((count, fake_embedder.dim)).astype(np.float32)
        copy_vectors(1, ids, [workspace.pk] * count, model.label, vectors)
        index_words(list(Memory.objects.filter(pk__in=ids)))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # deferred constraints would prevent CREATE INDEX
        for table in BIG:
            cursor.execute(f"ANALYZE {table}")
    return cast


def plans(statements: list[str]) -> Iterator[dict[str, Any]]:
    """Yield every node of every plan."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(f"EXPLAIN (FORMAT json) {statement}")
            (found,) = cursor.fetchone()
            tops = json.loads(found) if isinstance(found, str) else found
            waiting = [top["Plan"] for top in tops]
            while waiting:
                node = waiting.pop()
                waiting += node.get("Plans", [])
                yield node


def test_recall_scans_no_large_table(grown: Cast) -> None:
    for ranking in ("hybrid", "semantic", "longterm", "lexical"):
        how: dict[str, Any] = {"ranking": ranking, "threshold": -1, "policy": HERE, "now": timezone.now()}
        with CaptureQueriesContext(connection) as captured:
            found = recall("note about thing4", grown.workspace, grown.editor, **how)
        assert found.items and not found.degraded, ranking
        statements = [
            query["sql"]
            for query in captured.captured_queries
            if query["sql"].lstrip().startswith(("SELECT", "WITH", "UPDATE"))
        ]
        assert len(statements) <= 8, ranking
        nodes = list(plans(statements))
        scanned = [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"]
        assert not BIG & set(scanned), ranking


def test_hybrid_reads_vectors_and_words_by_place(grown: Cast) -> None:
    with CaptureQueriesContext(connection) as captured:
        recall("note about thing4", grown.workspace, grown.editor, policy=HERE, now=timezone.now())
    arms = [query["sql"] for query in captured.captured_queries if "passageword" in query["sql"]]
    assert len(arms) == 1
    used = {node.get("Index Name") for node in plans(arms)}
    assert {"passage_of_place", "workspaces_passageword_pkey"} <= used


def test_automatic_memories_are_counted_in_their_small_index(grown: Cast) -> None:
    with CaptureQueriesContext(connection) as captured:
        excess(grown.workspace.pk, None, now=timezone.now(), most=1)
    (node, *_) = (node for node in plans([captured.captured_queries[0]["sql"]]) if "Index Name" in node)
    assert node["Index Name"] == "memory_automatic"


def test_a_place_with_an_index_is_read_by_it(grown: Cast, fake_embedder: FakeEmbedder) -> None:
    model = active_or_first()
    assert model is not None
    place = Memory.objects.exclude(workspace=grown.workspace).values_list("workspace_id", flat=True)[0]
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX passages_near_test ON workspaces_passagevector USING hnsw "
            f"((embedding::halfvec({fake_embedder.dim})) halfvec_cosine_ops) "
            f"WHERE place = {place} AND kind = 1 AND model = '{model.label}' "
            f"AND dimension = {fake_embedder.dim} AND live"
        )
    where = hybrid_search.SearchArea(
        place, grown.stranger.pk, frozenset({(place, 1, model.label, fake_embedder.dim)})
    )
    vector = fake_embedder.embed(["thing4"])[0]
    with CaptureQueriesContext(connection) as captured:
        found = hybrid_search.find_candidates(MEMORIES, "xyzzy", (model.label, vector), where, 20)
    assert len(found) == 20
    arms = [query["sql"] for query in captured.captured_queries if query["sql"].lstrip().startswith("WITH")]
    assert "passages_near_test" in {node.get("Index Name") for node in plans(arms)}
